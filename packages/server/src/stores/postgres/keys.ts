import { timingSafeEqual } from 'node:crypto';
import type { KeyLookup, KeyRecord, KeyStore } from '../key-store.ts';
import { generateKey, hashKey, keyId } from '../sql/key-format.ts';
import type { PostgresDatabase } from './database.ts';
import { endRequests } from './requests.ts';

interface Row {
  id: string;
  name: string;
  hash: Buffer;
  created_at: number;
  last_used_at: number | null;
  expires_at: number | null;
  revoked_at: number | null;
}

/** Compared with when the id is unknown, so that an unknown id takes as long as a wrong secret. */
const NO_HASH = Buffer.alloc(32);

const ACTIVE = 'revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)';

export class PostgresKeyStore implements KeyStore {
  readonly #database: PostgresDatabase;

  constructor(database: PostgresDatabase) {
    this.#database = database;
  }

  async create(
    name: string,
    { expiresAt }: { expiresAt?: Date } = {},
  ): Promise<{ key: string; record: KeyRecord }> {
    const { id, key } = generateKey();
    const row = await this.#database.get<Row>(
      `INSERT INTO keys (id, name, hash, created_at, expires_at)
       VALUES (:id, :name, :hash, :now, :expiresAt) RETURNING *`,
      { id, name, hash: hashKey(key), expiresAt: expiresAt?.getTime() ?? null },
    );
    return { key, record: asRecord(row as Row) };
  }

  async lookUp(key: string): Promise<KeyLookup> {
    const row = await this.#database.get<Row & { expired: boolean | null }>(
      'SELECT *, expires_at <= :now AS expired FROM keys WHERE id = :id',
      { id: keyId(key) ?? '' },
    );
    const same = timingSafeEqual(hashKey(key), row?.hash ?? NO_HASH);
    if (row === undefined || !same) return { state: 'unknown' };
    if (row.revoked_at !== null) return { state: 'revoked' };
    if (row.expired) return { state: 'expired' };
    return { state: 'active', id: row.id, name: row.name };
  }

  async noteUses(uses: ReadonlyMap<string, number>): Promise<void> {
    if (uses.size === 0) return;
    // Other processes note uses as well, not in order. Rows are locked in one order, so that two do not wait for each other.
    await this.#database.run(
      `WITH uses AS (SELECT use ->> 0 AS id, (use ->> 1)::bigint AS at FROM json_array_elements(:uses) AS use),
         due AS (SELECT keys.id FROM keys JOIN uses USING (id) ORDER BY keys.id FOR UPDATE OF keys)
       UPDATE keys SET last_used_at = greatest(last_used_at, uses.at) FROM uses, due
       WHERE keys.id = uses.id AND keys.id = due.id`,
      { uses: JSON.stringify([...uses]) },
    );
  }

  async list(): Promise<KeyRecord[]> {
    const rows = await this.#database.all<Row>('SELECT * FROM keys ORDER BY created_at DESC, id');
    return rows.map(asRecord);
  }

  revoke(idOrName: string): Promise<{ revoked: KeyRecord } | { why: 'unknown' | 'ambiguous' }> {
    return this.#database.transaction(async (query) => {
      const byId = await query<{ id: string }>(
        'SELECT id FROM keys WHERE id = :idOrName AND revoked_at IS NULL FOR UPDATE',
        { idOrName },
      );
      const byName = await query<{ id: string }>(
        `SELECT id FROM keys WHERE name = :idOrName AND ${ACTIVE} ORDER BY id FOR UPDATE`,
        { idOrName },
      );
      const [found, another] = byId.count > 0 ? byId.rows : byName.rows;
      if (found === undefined) return { why: 'unknown' };
      if (another !== undefined) return { why: 'ambiguous' };
      const { id } = found;
      await endRequests(query, 'deleted', `owner = :id AND state IN ('uploading', 'queued', 'processing')`, {
        id,
      });
      const revoked = await query<Row>('UPDATE keys SET revoked_at = :now WHERE id = :id RETURNING *', {
        id,
      });
      return { revoked: asRecord(revoked.rows[0] as Row) };
    });
  }

  async isEmpty(): Promise<boolean> {
    return (await this.#database.run(`SELECT 1 FROM keys WHERE ${ACTIVE} LIMIT 1`)) === 0;
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
