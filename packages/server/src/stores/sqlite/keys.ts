import { timingSafeEqual } from 'node:crypto';
import type { KeyLookup, KeyRecord, KeyStore } from '../key-store.ts';
import { generateKey, hashKey, keyId } from '../sql/key-format.ts';
import { leaveTombstones } from '../sql/tombstones.ts';
import type { RetryingDatabase } from './retrying-database.ts';

interface Row {
  id: string;
  name: string;
  hash: Uint8Array;
  created_at: number;
  last_used_at: number | null;
  expires_at: number | null;
  revoked_at: number | null;
}

/** Compared with when the id is unknown, so that an unknown id takes as long as a wrong secret. */
const NO_HASH = Buffer.alloc(32);

const ACTIVE = 'revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)';

export class SqliteKeyStore implements KeyStore {
  readonly #database: RetryingDatabase;
  readonly #now: () => number;

  constructor(database: RetryingDatabase, now: () => number = Date.now) {
    this.#database = database;
    this.#now = now;
  }

  async create(
    name: string,
    { expiresAt }: { expiresAt?: Date } = {},
  ): Promise<{ key: string; record: KeyRecord }> {
    const { id, key } = generateKey();
    const row = await this.#database.get<Row>(
      `INSERT INTO keys (id, name, hash, created_at, expires_at)
       VALUES (:id, :name, :hash, :now, :expiresAt) RETURNING *`,
      { id, name, hash: hashKey(key), now: this.#now(), expiresAt: expiresAt?.getTime() ?? null },
    );
    return { key, record: asRecord(row as Row) };
  }

  async lookUp(key: string): Promise<KeyLookup> {
    const row = await this.#database.get<Row>('SELECT * FROM keys WHERE id = :id', { id: keyId(key) ?? '' });
    const same = timingSafeEqual(hashKey(key), row?.hash ?? NO_HASH);
    if (row === undefined || !same) return { state: 'unknown' };
    if (row.revoked_at !== null) return { state: 'revoked' };
    if (row.expires_at !== null && row.expires_at <= this.#now()) return { state: 'expired' };
    return { state: 'active', id: row.id, name: row.name };
  }

  async noteUses(uses: ReadonlyMap<string, number>): Promise<void> {
    if (uses.size === 0) return;
    await this.#database.transaction((prepare) => {
      // Other processes note uses as well, not in order.
      const note = prepare(
        'UPDATE keys SET last_used_at = max(coalesce(last_used_at, 0), :at) WHERE id = :id',
      );
      for (const [id, at] of uses) note.run({ id, at });
    });
  }

  async list(): Promise<KeyRecord[]> {
    const rows = await this.#database.all<Row>('SELECT * FROM keys ORDER BY created_at DESC, id');
    return rows.map(asRecord);
  }

  revoke(idOrName: string): Promise<{ revoked: KeyRecord } | { why: 'unknown' | 'ambiguous' }> {
    return this.#database.transaction((prepare) => {
      const now = this.#now();
      const byId = prepare('SELECT id FROM keys WHERE id = ? AND revoked_at IS NULL').all(idOrName);
      const byName = prepare(`SELECT id FROM keys WHERE name = :idOrName AND ${ACTIVE}`).all({
        idOrName,
        now,
      });
      const [found, another] = (byId.length > 0 ? byId : byName) as { id: string }[];
      if (found === undefined) return { why: 'unknown' };
      if (another !== undefined) return { why: 'ambiguous' };
      const { id } = found;
      const unfinished = `owner = :id AND state IN ('uploading', 'queued', 'processing')`;
      leaveTombstones(prepare, 'deleted', unfinished, { id });
      const row = prepare('UPDATE keys SET revoked_at = :now WHERE id = :id RETURNING *').get({ id, now });
      return { revoked: asRecord(row as unknown as Row) };
    });
  }

  async isEmpty(): Promise<boolean> {
    const active = `SELECT 1 FROM keys WHERE ${ACTIVE} LIMIT 1`;
    return (await this.#database.get(active, { now: this.#now() })) === undefined;
  }
}

function asRecord(row: Row): KeyRecord {
  const date = (ms: number | null) => (ms === null ? null : new Date(ms));
  return {
    id: row.id,
    name: row.name,
    createdAt: new Date(row.created_at),
    lastUsedAt: date(row.last_used_at),
    expiresAt: date(row.expires_at),
    revokedAt: date(row.revoked_at),
  };
}
