import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ChangedKey, KeyLookup, KeyRecord, KeyStore, NewKey } from '../contracts.ts';
import {
  changedLimits,
  LIMITS_OF_KEYS,
  LIMITS_OF_OWNERS,
  type LimitChanges,
  type NamedLimits,
  namesAny,
} from '../key-limits.ts';
import type { Query, SqlDatabase } from './database.ts';
import { tombstoneRequests } from './request-row.ts';

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

/** `ut_<id>_<secret>`: the id finds the row, so that the secret is only ever compared, never searched for. */
const FORMAT = /^ut_([0-9a-f]{12})_[\w-]{43}$/;

/** Compared with when the id is unknown, so that an unknown id takes as long as a wrong secret. */
const NO_HASH = Buffer.alloc(32);

const KEYS =
  'SELECT keys.*, owners.limits AS owner_limits FROM keys LEFT JOIN owners ON owners.name = keys.owner';

const ACTIVE = 'revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)';

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
      return writeLimits(query, id, limits);
    });
    return { key, record };
  }

  async lookUp(key: string): Promise<KeyLookup> {
    const [row] = await this.#database.query<KeyRow & { expired: boolean | number | null }>(
      `SELECT key.*, expires_at <= :now AS expired FROM (${KEYS}) AS key WHERE id = :id`,
      { id: FORMAT.exec(key)?.[1] ?? '' },
    );
    const isSame = timingSafeEqual(hashOf(key), row?.hash ?? NO_HASH);
    if (row === undefined || !isSame) return { state: 'unknown' };
    if (row.revoked_at !== null) return { state: 'revoked' };
    if (row.expired) return { state: 'expired' };
    return { state: 'active', id: row.id, name: row.name, owner: row.owner, limits: limitsOf(row) };
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
      return 'why' in found ? found : { changed: await writeLimits(query, found.id, changes) };
    });
  }

  revoke(idOrName: string): Promise<{ revoked: KeyRecord } | { why: 'unknown' | 'ambiguous' }> {
    const { dialect } = this.#database;
    return this.#database.transaction(async (query) => {
      const found = await this.#findActive(query, idOrName);
      if ('why' in found) return found;
      const { id, owner } = found;
      await query('UPDATE keys SET revoked_at = :now WHERE id = :id', { id });
      // A key can be replaced by another of the same owner without losing anything.
      const others = await query(`SELECT 1 FROM keys WHERE owner = :owner AND ${ACTIVE} LIMIT 1`, { owner });
      const where = `owner = :owner AND state IN ('uploading', 'queued', 'processing')`;
      if (others.length === 0) {
        await tombstoneRequests(query, dialect, { state: 'deleted', where, values: { owner } });
      }
      return { revoked: await recordOf(query, id) };
    });
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
    const [found, another] = byId.length > 0 ? byId : await find(`name = :idOrName AND ${ACTIVE}`);
    if (found === undefined) return { why: 'unknown' };
    return another === undefined ? found : { why: 'ambiguous' };
  }

  async isEmpty(): Promise<boolean> {
    return (await this.#database.query(`SELECT 1 FROM keys WHERE ${ACTIVE} LIMIT 1`)).length === 0;
  }
}

/** Keys are 256 random bits, so a fast hash is as good as a slow one. */
function hashOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
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
