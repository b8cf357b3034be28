import { timingSafeEqual } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { generateKey, hashKey, keyId } from './key-format.ts';
import type { Caller, KeyRecord, KeyStore } from './key-store.ts';

interface Row {
  id: string;
  name: string;
  hash: Uint8Array;
  created_at: number;
  last_used_at: number | null;
  revoked_at: number | null;
}

/** Uses are noted at most this often, so that reading a key does not mean writing to disk. */
const NOTE_USES_EVERY_MS = 60_000;

/** Compared with when the id is unknown, so that an unknown id takes as long as a wrong secret. */
const NO_HASH = Buffer.alloc(32);

export class SqliteKeyStore implements KeyStore {
  readonly #database: DatabaseSync;
  readonly #find;
  readonly #used = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#find = database.prepare('SELECT * FROM keys WHERE id = ? AND revoked_at IS NULL');
    this.#timer = setInterval(() => this.#noteUses(), NOTE_USES_EVERY_MS).unref();
  }

  async create(name: string): Promise<{ key: string; record: KeyRecord }> {
    const { id, key } = generateKey();
    const createdAt = new Date();
    this.#database
      .prepare('INSERT INTO keys (id, name, hash, created_at) VALUES (?, ?, ?, ?)')
      .run(id, name, hashKey(key), createdAt.getTime());
    return { key, record: { id, name, createdAt, lastUsedAt: null, revokedAt: null } };
  }

  async verify(key: string): Promise<Caller | null> {
    const row = this.#find.get(keyId(key) ?? '') as Row | undefined;
    const same = timingSafeEqual(hashKey(key), row?.hash ?? NO_HASH);
    if (!row || !same) return null;
    this.#used.set(row.id, Date.now());
    return { id: row.id, name: row.name };
  }

  async list(): Promise<KeyRecord[]> {
    this.#noteUses();
    const rows = this.#database.prepare('SELECT * FROM keys ORDER BY created_at DESC, id').all();
    return (rows as unknown as Row[]).map(asRecord);
  }

  async revoke(id: string): Promise<boolean> {
    const { changes } = this.#database
      .prepare('UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL')
      .run(Date.now(), id);
    return changes === 1;
  }

  async isEmpty(): Promise<boolean> {
    return this.#database.prepare('SELECT 1 FROM keys WHERE revoked_at IS NULL LIMIT 1').get() === undefined;
  }

  async checkWritable(): Promise<void> {
    // Takes the write lock and gives it back: a full or read-only disk shows here, and nothing changes.
    this.#database.exec('BEGIN IMMEDIATE; UPDATE keys SET name = name WHERE 0; ROLLBACK;');
  }

  /** The database is closed by whoever opened it. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#noteUses();
  }

  #noteUses(): void {
    if (this.#used.size === 0) return;
    const note = this.#database.prepare('UPDATE keys SET last_used_at = ? WHERE id = ?');
    for (const [id, at] of this.#used) note.run(at, id);
    this.#used.clear();
  }
}

function asRecord(row: Row): KeyRecord {
  return {
    id: row.id,
    name: row.name,
    createdAt: new Date(row.created_at),
    lastUsedAt: row.last_used_at === null ? null : new Date(row.last_used_at),
    revokedAt: row.revoked_at === null ? null : new Date(row.revoked_at),
  };
}
