import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type pg from 'pg';
import { RefusedError } from '../errors.ts';
import { migratePostgres } from '../postgres/migrate.ts';
import { SECRET_FILE } from '../signing.ts';
import { isOpenElsewhere, openDatabase } from '../sqlite/open.ts';
import { inPostgres } from './connection.ts';
import { copyToPostgres, type Table } from './rows.ts';

export interface Moved {
  readonly keys: number;
  readonly requests: number;
  readonly webhooks: number;
  /** Unfinished recordings are not copied: their audio is in the data folder. */
  readonly unfinished: number;
}

/** Results that have not expired, and tombstones. */
const FINISHED = `state IN ('expired', 'deleted') OR state IN ('completed', 'failed') AND expires_at > :now`;

/**
 * Copies keys, owners, results, tombstones, webhooks still to be sent and the signing secret from the data folder into
 * PostgreSQL, in one transaction. Existing rows stay as they are, so that it can be run again. Nothing in the data folder
 * changes.
 */
export async function moveToPostgres({ dataDir, url }: { dataDir: string; url: string }): Promise<Moved> {
  const embedded = await openDatabase(dataDir);
  try {
    if (isOpenElsewhere(embedded)) {
      throw new RefusedError(
        `A server is using ${dataDir}: what it does now would not be moved. Stop it first, then run this again.`,
      );
    }
    await migratePostgres(url);
    return await inPostgres(url, 'BEGIN', (client) => move(embedded, dataDir, client));
  } finally {
    embedded.close();
  }
}

async function move(embedded: DatabaseSync, dataDir: string, client: pg.Client): Promise<Moved> {
  const now = Date.now();
  await moveSecret(join(dataDir, SECRET_FILE), client);
  const copy = (table: Table, select: string, where?: string) => {
    const rows = embedded.prepare(select).iterate(select.includes(':now') ? { now } : {});
    return copyToPostgres(client, table, rows, where);
  };
  const ofFinished = (table: string) =>
    `SELECT ${table}.* FROM ${table} JOIN requests ON requests.id = request_id WHERE ${FINISHED}`;
  const keys = await copy('keys', 'SELECT * FROM keys');
  await copy('owners', 'SELECT * FROM owners');
  await copy('audio_use', 'SELECT * FROM audio_use');
  // The audio of a finished request has been erased, or is about to be.
  const requests = await copy('requests', `SELECT *, 0 AS stored_bytes FROM requests WHERE ${FINISHED}`);
  await copy('results', ofFinished('results'));
  await copy('result_chunks', ofFinished('result_chunks'));
  // Not those of an earlier run: they may have been sent since.
  const ofThisRun = 'request_id IN (SELECT id FROM requests WHERE xmin = pg_current_xact_id()::xid)';
  const webhooks = await copy('webhooks', ofFinished('webhooks'), ofThisRun);
  return { keys, requests, webhooks, unfinished: countUnfinished(embedded, now) };
}

/** Signs upload URLs, tokens and webhooks: with another one, all that clients have would be invalid. */
async function moveSecret(file: string, client: pg.Client): Promise<void> {
  if (!existsSync(file)) return;
  const value = await readFile(file);
  await copyToPostgres(client, 'secrets', [{ name: 'presign', value }]);
  const { rows } = await client.query<{ value: Buffer }>(`SELECT value FROM secrets WHERE name = 'presign'`);
  if (rows[0]?.value.equals(value)) return;
  throw new RefusedError(
    'This database has a signing secret of its own, because a server was started with it. Moved webhooks would get other signatures. Use an empty database.',
  );
}

function countUnfinished(embedded: DatabaseSync, now: number): number {
  const row = embedded
    .prepare(
      `SELECT count(*) AS count FROM requests WHERE state IN ('uploading', 'queued', 'processing') AND expires_at > ?`,
    )
    .get(now);
  return (row as { count: number }).count;
}
