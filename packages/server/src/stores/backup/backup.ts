import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type pg from 'pg';
import { fromDisk, RefusedError } from '../errors.ts';
import { schemaOf } from '../postgres/migrate.ts';
import { SECRET_FILE } from '../signing.ts';
import { copyDatabase, DATABASE_FILE, openDatabase } from '../sqlite/open.ts';
import { inPostgres } from './connection.ts';
import { copyFromPostgres, TABLES } from './rows.ts';

export interface BackupOptions {
  readonly file: string;
  readonly dataDir: string;
  /** Empty: the database is in the data folder. */
  readonly databaseUrl: string;
  /** Leaves out requests, results and webhooks, which may not be kept longer than 24 hours. */
  readonly keysOnly?: boolean;
}

export interface Contents {
  readonly keys: number;
  readonly requests: number;
  readonly webhooks: number;
  /** Uploading, queued or processing: their audio is not part of the backup. */
  readonly unfinished: number;
}

/**
 * Writes all rows of one moment and the signing secret to a file that only its owner can read. The service may be running. The
 * file is an embedded database with one more table, so it can be restored into either database.
 */
export async function backUp({
  file,
  dataDir,
  databaseUrl,
  keysOnly = false,
}: BackupOptions): Promise<Contents> {
  if (existsSync(file)) throw new RefusedError(`${file} exists already. Choose another name.`);
  // Beside the file, so that it can be renamed; with all its temporary files, which have results too.
  const folder = await mkdtemp(join(dirname(resolve(file)), '.undertone-backup-')).catch((error: unknown) => {
    throw fromDisk(error);
  });
  try {
    const copy = join(folder, DATABASE_FILE);
    const secret = await (databaseUrl === ''
      ? copyEmbedded(dataDir, copy)
      : inPostgres(databaseUrl, 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', (client) =>
          copyPostgres(client, folder),
        ));
    const contents = finish(copy, secret, keysOnly);
    await rename(copy, file);
    return contents;
  } catch (error) {
    throw fromDisk(error);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Returns the signing secret, or null if the service was never started, or has its secret from a setting. */
async function copyEmbedded(dataDir: string, copy: string): Promise<Uint8Array | null> {
  copyDatabase(join(dataDir, DATABASE_FILE), copy);
  return readFile(join(dataDir, SECRET_FILE)).catch(() => null);
}

async function copyPostgres(client: pg.Client, folder: string): Promise<Uint8Array | null> {
  const { done, newest } = await schemaOf(client);
  if (done !== newest) throw new RefusedError('Migrate this database first, with `undertone migrate`.');
  const embedded = await openDatabase(folder);
  try {
    for (const table of TABLES) await copyFromPostgres(client, table, embedded);
  } finally {
    embedded.close();
  }
  const { rows } = await client.query<{ value: Buffer }>(`SELECT value FROM secrets WHERE name = 'presign'`);
  return rows[0]?.value ?? null;
}

/** Makes one file of it, without a write-ahead log. */
function finish(path: string, secret: Uint8Array | null, keysOnly: boolean): Contents {
  const database = new DatabaseSync(path);
  try {
    database.exec('PRAGMA journal_mode = DELETE; PRAGMA foreign_keys = ON');
    database.exec('CREATE TABLE backup (created_at INTEGER NOT NULL, secret BLOB) STRICT');
    database.prepare('INSERT INTO backup VALUES (?, ?)').run(Date.now(), secret);
    if (keysOnly) database.exec('DELETE FROM requests; DELETE FROM audio_use; VACUUM');
    return contentsOf(database);
  } finally {
    database.close();
  }
}

export function contentsOf(database: DatabaseSync): Contents {
  const row = database
    .prepare(
      `SELECT (SELECT count(*) FROM keys) AS keys, (SELECT count(*) FROM requests) AS requests,
         (SELECT count(*) FROM webhooks) AS webhooks,
         (SELECT count(*) FROM requests WHERE state IN ('uploading', 'queued', 'processing')) AS unfinished`,
    )
    .get();
  return { ...row } as unknown as Contents;
}
