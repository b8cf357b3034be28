import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChangedKey, KeyEvent, KeyLookup, KeyRecord, KeyStore, NewKey } from '../contracts.ts';
import { StoreUnavailableError } from '../errors.ts';
import {
  changedLimits,
  LIMITS_OF_KEYS,
  LIMITS_OF_OWNERS,
  type LimitChanges,
  type NamedLimits,
  namesAny,
} from '../key-limits.ts';
import type { Query, SqlDatabase, Values } from './database.ts';
import { BATCH_ROWS, tombstoneRequests } from './request-row.ts';

interface KeyRow {
  id: string;
  name: string;
  hash: Uint8Array;
  created_at: number;
  last_used_at: number | null;
  expires_at: number | null;
  revoked_at: number | null;
  owner: string;
  limits: string;
  /** Null if the owner has none of its own. */
  owner_limits: string | null;
}

interface FoundRow extends KeyRow {
  expired: boolean | number | null;
}

/** `ut_<id>_<secret>`: the id finds the row, so that the secret is only ever compared, never searched for. */
const FORMAT = /^ut_([0-9a-f]{12})_[\w-]{43}$/;

/** Compared with when the id is unknown, so that an unknown id takes as long as a wrong secret. */
const NO_HASH = Buffer.alloc(32);

const KEYS =
  'SELECT keys.*, owners.limits AS owner_limits FROM keys LEFT JOIN owners ON owners.name = keys.owner';

export const ACTIVE_KEY = 'keys.revoked_at IS NULL AND (keys.expires_at IS NULL OR keys.expires_at > :now)';

/** Between two batches. */
const PAUSE_MS = 10;

export class SqlKeyStore implements KeyStore {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  async create(
    name: string,
    { expiresAt, owner, limits = {} }: NewKey = {},
  ): Promise<{ key: string; record: KeyRecord }> {
    const id = randomBytes(6).toString('hex');
    const key = `ut_${id}_${randomBytes(32).toString('base64url')}`;
    const record = await this.#database.transaction(async (query) => {
      await query(
        `INSERT INTO keys (id, name, hash, owner, created_at, expires_at)
         VALUES (:id, :name, :hash, :owner, :now, :expiresAt)`,
        { id, name, hash: hashOf(key), owner: owner ?? id, expiresAt: expiresAt?.getTime() ?? null },
      );
      const made = await writeLimits(query, id, limits);
      await noteChange(query, 'created', made);
      return made;
    });
    return { key, record };
  }

  async lookUp(key: string): Promise<KeyLookup> {
    const row = await this.#find(FORMAT.exec(key)?.[1] ?? '');
    const isSame = timingSafeEqual(hashOf(key), row?.hash ?? NO_HASH);
    return toLookup(isSame ? row : undefined);
  }

  async lookUpId(id: string): Promise<KeyLookup> {
    return toLookup(await this.#find(id));
  }

  async #find(id: string): Promise<FoundRow | undefined> {
    const [row] = await this.#database.query<FoundRow>(
      `SELECT key.*, expires_at <= :now AS expired FROM (${KEYS}) AS key WHERE id = :id`,
      { id },
    );
    return row;
  }

  async recordLastUsed(uses: ReadonlyMap<string, number>): Promise<void> {
    if (uses.size === 0) return;
    const { isOneOf, elements, forUpdate } = this.#database.dialect;
    await this.#database.transaction(async (query) => {
      // Every process locks keys in the same order: no deadlocks.
      const lock = `SELECT id FROM keys WHERE ${isOneOf('id', 'ids')} ORDER BY id ${forUpdate}`;
      await query(lock, { ids: [...uses.keys()] });
      // Another process may have recorded a later use.
      await query(
        `UPDATE keys SET last_used_at = uses.at
         FROM (SELECT value ->> 0 AS id, CAST(value ->> 1 AS bigint) AS at FROM ${elements('uses')} AS use) AS uses
         WHERE keys.id = uses.id AND coalesce(last_used_at, 0) < uses.at`,
        { uses: JSON.stringify([...uses]) },
      );
    });
  }

  async list(): Promise<KeyRecord[]> {
    const rows = await this.#database.query<KeyRow>(`${KEYS} ORDER BY created_at DESC, id`);
    return rows.map(toRecord);
  }

  changeLimits(idOrName: string, changes: LimitChanges): Promise<ChangedKey> {
    return this.#database.transaction(async (query) => {
      const found = await this.#findActive(query, idOrName);
      if ('why' in found) return found;
      const changed = await writeLimits(query, found.id, changes);
      await noteChange(query, 'limited', changed);
      return { changed };
    });
  }

  async revoke(
    idOrName: string,
    { batchRows = BATCH_ROWS }: { batchRows?: number } = {},
  ): Promise<{ revoked: KeyRecord } | { why: 'unknown' | 'ambiguous' }> {
    const answer = await this.#database.transaction(async (query) => {
      const found = await this.#findActive(query, idOrName);
      if ('why' in found) return found;
      const { id, owner } = found;
      await query('UPDATE keys SET revoked_at = :now WHERE id = :id', { id });
      // A key can be replaced by another of the same owner without losing anything.
      const others = await query(`SELECT 1 FROM keys WHERE owner = :owner AND ${ACTIVE_KEY} LIMIT 1`, {
        owner,
      });
      const revoked = await recordOf(query, id);
      await noteChange(query, 'revoked', revoked);
      return { revoked, wasLast: others.length === 0 };
    });
    if ('why' in answer) return answer;
    const { revoked, wasLast } = answer;
    if (wasLast) await this.#deleteUnfinished(revoked.owner, batchRows);
    return { revoked };
  }

  /** Oldest first, along an index: no batch reads again what the one before it has deleted. */
  async #deleteUnfinished(owner: string, limit: number): Promise<void> {
    const { dialect } = this.#database;
    const where = `owner = :owner AND state IN ('uploading', 'queued', 'processing')
      AND (created_at, id) > (CAST(:afterTime AS bigint), :afterId)`;
    const tail = `ORDER BY created_at, id LIMIT :limit ${dialect.forUpdate}`;
    let after: { created_at: number; id: string } | undefined = { created_at: -1, id: '' };
    while (after !== undefined) {
      const values: Values = { owner, afterTime: after.created_at, afterId: after.id, limit };
      const batch: { created_at: number; id: string }[] = await this.#database
        .transaction((query) => tombstoneRequests(query, dialect, { state: 'deleted', where, values, tail }))
        .catch((cause: unknown) => {
          if (!(cause instanceof StoreUnavailableError)) throw cause;
          const detail = `${cause.reason}; the key is revoked, but some of its unfinished requests remain until they expire`;
          throw new StoreUnavailableError(detail, { cause });
        });
      after = batch.length < limit ? undefined : batch.at(-1);
      // Other processes that wait for SQLite's lock get it now.
      if (after !== undefined) await sleep(PAUSE_MS);
    }
  }

  async #findActive(
    query: Query,
    idOrName: string,
  ): Promise<{ id: string; owner: string } | { why: 'unknown' | 'ambiguous' }> {
    const { forUpdate } = this.#database.dialect;
    const find = (where: string) =>
      query<{ id: string; owner: string }>(
        `SELECT id, owner FROM keys WHERE ${where} ORDER BY id ${forUpdate}`,
        { idOrName },
      );
    const byId = await find('id = :idOrName AND revoked_at IS NULL');
    const [found, another] = byId.length > 0 ? byId : await find(`name = :idOrName AND ${ACTIVE_KEY}`);
    if (found === undefined) return { why: 'unknown' };
    return another === undefined ? found : { why: 'ambiguous' };
  }

  async takeEvents(): Promise<KeyEvent[]> {
    // Most of the time there are none, and then nothing is locked or written.
    if ((await this.#database.query('SELECT 1 FROM key_events LIMIT 1')).length === 0) return [];
    const { skipLocked } = this.#database.dialect;
    const rows = await this.#database.query<{ id: number; event: string }>(
      `DELETE FROM key_events WHERE id IN (SELECT id FROM key_events ORDER BY id LIMIT 100 ${skipLocked('key_events')})
       RETURNING id, event`,
    );
    return rows.toSorted((a, b) => a.id - b.id).map(({ event }) => JSON.parse(event));
  }

  async isEmpty(): Promise<boolean> {
    return (await this.#database.query(`SELECT 1 FROM keys WHERE ${ACTIVE_KEY} LIMIT 1`)).length === 0;
  }
}

/** Keys are 256 random bits, so a fast hash is as good as a slow one. */
function hashOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

function toLookup(row: FoundRow | undefined): KeyLookup {
  if (row === undefined) return { state: 'unknown' };
  if (row.revoked_at !== null) return { state: 'revoked' };
  if (row.expired) return { state: 'expired' };
  return { state: 'active', id: row.id, name: row.name, owner: row.owner, limits: limitsOf(row) };
}

async function recordOf(query: Query, id: string): Promise<KeyRecord> {
  const [row] = await query<KeyRow>(`SELECT * FROM (${KEYS}) AS key WHERE id = :id`, { id });
  return toRecord(row as KeyRow);
}

/** Part of a transaction. */
async function writeLimits(query: Query, id: string, changes: LimitChanges): Promise<KeyRecord> {
  const before = await recordOf(query, id);
  if (namesAny(changes, LIMITS_OF_KEYS)) {
    const limits = JSON.stringify(changedLimits(before.limits, changes, LIMITS_OF_KEYS));
    await query('UPDATE keys SET limits = :limits WHERE id = :id', { id, limits });
  }
  if (namesAny(changes, LIMITS_OF_OWNERS)) {
    const limits = JSON.stringify(changedLimits(before.limits, changes, LIMITS_OF_OWNERS));
    await query(
      `INSERT INTO owners (name, limits) VALUES (:owner, :limits)
       ON CONFLICT (name) DO UPDATE SET limits = excluded.limits`,
      { owner: before.owner, limits },
    );
  }
  return recordOf(query, id);
}

/** Part of the transaction that made the change. */
async function noteChange(query: Query, change: KeyEvent['change'], record: KeyRecord): Promise<void> {
  const { id: key, name, owner, limits } = record;
  const [clock] = await query<{ now: number }>('SELECT CAST(:now AS bigint) AS now');
  const event: KeyEvent = { change, key, name, owner, limits, at: clock?.now ?? 0 };
  await query('INSERT INTO key_events (event) VALUES (:event)', { event: JSON.stringify(event) });
}

function limitsOf({ limits, owner_limits }: KeyRow): NamedLimits {
  return { ...JSON.parse(limits), ...JSON.parse(owner_limits ?? '{}') };
}

function toRecord(row: KeyRow): KeyRecord {
  const date = (ms: number | null) => (ms === null ? null : new Date(ms));
  return {
    id: row.id,
    name: row.name,
    createdAt: new Date(row.created_at),
    lastUsedAt: date(row.last_used_at),
    expiresAt: date(row.expires_at),
    revokedAt: date(row.revoked_at),
    owner: row.owner,
    limits: limitsOf(row),
  };
}
