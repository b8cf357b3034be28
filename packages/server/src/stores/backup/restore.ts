import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type pg from 'pg';
import type { BlobStore } from '../blobs.ts';
import type { Failure } from '../contracts.ts';
import { fromDisk, RefusedError } from '../errors.ts';
import { migratePostgres } from '../postgres/migrate.ts';
import { SECRET_FILE } from '../signing.ts';
import { copyDatabase, DATABASE_FILE, isOpenElsewhere, openDatabase } from '../sqlite/open.ts';
import { type Contents, contentsOf } from './backup.ts';
import { inPostgres, requireNoProcess } from './connection.ts';
import { copyToPostgres, TABLES } from './rows.ts';

export interface RestoreOptions {
  readonly file: string;
  readonly dataDir: string;
  /** Empty: into the data folder. */
  readonly databaseUrl: string;
  /** Where the audio of unfinished recordings may still be. */
  readonly blobs: Pick<BlobStore, 'groups'>;
}

export interface Restored extends Contents {
  /** Recordings that were complete but not processed, and whose audio is gone: they are `failed` now. */
  readonly lost: number;
}

const LOST: Failure = {
  code: 'internal',
  detail:
    'The server was restored from a backup before this recording was processed, and its audio is gone. Send it again.',
  figures: {},
};

/**
 * Restores a backup into an empty database that no process uses. A recording that was waiting or being processed is queued
 * again if its audio is still in the store; otherwise it fails, and its owner gets the webhook. Open uploads go on: clients send
 * again what is missing.
 */
export async function restore(options: RestoreOptions): Promise<Restored> {
  const { file, dataDir, databaseUrl, blobs } = options;
  const secret = readSecret(file);
  if (databaseUrl === '') await requireEmptyFolder(dataDir);
  const folder = await mkdtemp(join(databaseUrl === '' ? dataDir : tmpdir(), '.undertone-restore-'));
  try {
    const copy = join(folder, DATABASE_FILE);
    copyDatabase(file, copy);
    const database = await openDatabase(folder);
    let restored: Restored;
    try {
      database.exec('DROP TABLE backup');
      const lost = settleUnfinished(database, new Set(await blobs.groups()));
      restored = { ...contentsOf(database), lost };
      if (databaseUrl !== '') await fillPostgres(database, secret, databaseUrl);
      // One file, without a write-ahead log.
      else database.exec('PRAGMA journal_mode = DELETE');
    } finally {
      database.close();
    }
    if (databaseUrl === '') {
      if (secret) await writeFile(join(dataDir, SECRET_FILE), secret, { mode: 0o600 });
      await rename(copy, join(dataDir, DATABASE_FILE));
    }
    return restored;
  } catch (error) {
    throw fromDisk(error);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function readSecret(file: string): Uint8Array | null {
  if (!existsSync(file)) throw new RefusedError(`There is no ${file}.`);
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file, { readOnly: true });
    return database.prepare('SELECT secret FROM backup').get()?.['secret'] as Uint8Array | null;
  } catch (cause) {
    throw new RefusedError(`${file} is not a backup that \`undertone backup\` wrote.`, { cause });
  } finally {
    database?.close();
  }
}

const NOT_EMPTY =
  'already has keys or requests, which a restore would mix with those of the backup. Restore into an empty one.';

async function requireEmptyFolder(dataDir: string): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  if (!existsSync(join(dataDir, DATABASE_FILE))) return;
  const database = await openDatabase(dataDir);
  try {
    if (isOpenElsewhere(database)) {
      throw new RefusedError(`A server is using ${dataDir}. Stop it first, then run this again.`);
    }
    const { keys, requests } = contentsOf(database);
    if (keys + requests > 0) throw new RefusedError(`${dataDir} ${NOT_EMPTY}`);
  } finally {
    database.close();
  }
}

async function fillPostgres(database: DatabaseSync, secret: Uint8Array | null, url: string): Promise<void> {
  await migratePostgres(url);
  await inPostgres(url, 'BEGIN', async (client) => {
    await requireNoProcess(client);
    const { rows } = await client.query('SELECT 1 FROM keys UNION ALL SELECT 1 FROM requests LIMIT 1');
    if (rows.length > 0) throw new RefusedError(`This database ${NOT_EMPTY}`);
    if (secret !== null) await replaceSecret(client, secret);
    for (const table of TABLES) {
      await copyToPostgres(client, table, database.prepare(`SELECT * FROM ${table}`).iterate());
    }
  });
}

/** Without keys and requests nothing was signed with the one that may be there. */
async function replaceSecret(client: pg.Client, value: Uint8Array): Promise<void> {
  await client.query(`DELETE FROM secrets WHERE name = 'presign'`);
  await copyToPostgres(client, 'secrets', [{ name: 'presign', value }]);
}

/** Returns how many requests failed because their audio is gone. */
function settleUnfinished(database: DatabaseSync, stored: ReadonlySet<string>): number {
  const now = Date.now();
  database.exec('BEGIN');
  const unfinished = database
    .prepare(
      `SELECT id, state, webhook_url FROM requests WHERE state IN ('uploading', 'queued', 'processing') AND expires_at > ?`,
    )
    .all(now) as { id: string; state: string; webhook_url: string | null }[];
  const fail = database.prepare(
    `UPDATE requests SET state = 'failed', progress = 1, queued_at = NULL, lease = NULL, lease_until = NULL, stored_bytes = 0
     WHERE id = ?`,
  );
  const insertFailure = database.prepare('INSERT INTO results (request_id, failure) VALUES (?, ?)');
  const insertWebhook = database.prepare(
    'INSERT INTO webhooks (id, request_id, created_at, due_at) VALUES (?, ?, ?, ?)',
  );
  const forgetParts = database.prepare('DELETE FROM parts WHERE request_id = ?');
  let lost = 0;
  for (const { id, state, webhook_url } of unfinished) {
    if (stored.has(id)) continue;
    forgetParts.run(id);
    if (state === 'uploading') {
      database.prepare('UPDATE requests SET stored_bytes = 0 WHERE id = ?').run(id);
      continue;
    }
    fail.run(id);
    insertFailure.run(id, JSON.stringify(LOST));
    if (webhook_url !== null) insertWebhook.run(randomUUID(), id, now, now);
    lost++;
  }
  // The workers of the backup are gone. That is no fault of the recordings.
  database.exec(
    `UPDATE requests SET state = 'queued', progress = 0, lease = NULL, lease_until = NULL WHERE state = 'processing'; COMMIT`,
  );
  return lost;
}
