import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { fromPostgres } from '../errors.ts';
import { SECRET_FILE } from '../signing.ts';
import { openDatabase } from '../sqlite/open.ts';
import { connectionOptions } from './database.ts';
import { migratePostgres } from './migrate.ts';

const CONNECT_MS = 5_000;
const ROWS_AT_ONCE = 500;
/** These have up to a few hundred kB each. */
const CHUNKS_AT_ONCE = 10;

export interface Moved {
  readonly keys: number;
  readonly requests: number;
  /** Webhooks still to be sent. */
  readonly webhooks: number;
  /** The target had another secret: signatures of webhooks and upload URLs change. */
  readonly otherSecret: boolean;
  /** Unfinished recordings are not copied: their audio is in the data folder. */
  readonly unfinished: number;
}

type Row = Record<string, unknown>;

/** Results that have not expired, and tombstones. */
const FINISHED = `state IN ('expired', 'deleted') OR state IN ('completed', 'failed') AND expires_at > :now`;

/**
 * Copies keys, owners with their limits and use, results, webhooks still to be sent, tombstones and the signing secret from
 * the data folder into PostgreSQL, in one transaction. Existing rows stay as they are, so that it can be run again. Nothing in the data folder changes.
 */
export async function moveToPostgres({ dataDir, url }: { dataDir: string; url: string }): Promise<Moved> {
  const embedded = await openDatabase(dataDir);
  const client = new pg.Client({ ...connectionOptions(url), connectionTimeoutMillis: CONNECT_MS });
  client.on('error', () => undefined);
  try {
    await migratePostgres(url);
    await client.connect();
    await client.query('BEGIN');
    const now = Date.now();
    const copied = {
      keys: await copy(client, 'keys', embedded.prepare('SELECT * FROM keys').iterate()),
      requests: await copy(
        client,
        'requests',
        // The audio of a finished request has been erased, or is about to be.
        embedded.prepare(`SELECT *, 0 AS stored_bytes FROM requests WHERE ${FINISHED}`).iterate({ now }),
      ),
      unfinished: countUnfinished(embedded, now),
    };
    const results = `SELECT results.* FROM results JOIN requests ON id = request_id WHERE ${FINISHED}`;
    await copy(client, 'results', embedded.prepare(results).iterate({ now }));
    const chunks = `SELECT result_chunks.* FROM result_chunks JOIN requests ON id = request_id WHERE ${FINISHED}`;
    await copy(client, 'result_chunks', embedded.prepare(chunks).iterate({ now }), {
      rowsAtOnce: CHUNKS_AT_ONCE,
    });
    const waiting = `SELECT webhooks.* FROM webhooks JOIN requests ON requests.id = request_id WHERE ${FINISHED}`;
    // Not those of an earlier run: they may have been sent since.
    const webhooks = await copy(client, 'webhooks', embedded.prepare(waiting).iterate({ now }), {
      where: 'request_id IN (SELECT id FROM requests WHERE xmin = pg_current_xact_id()::xid)',
    });
    for (const table of ['owners', 'audio_use']) {
      await copy(client, table, embedded.prepare(`SELECT * FROM ${table}`).iterate());
    }
    // URLs signed with it stay valid.
    const secret = await readFile(join(dataDir, SECRET_FILE)).catch(() => null);
    if (secret !== null) await copy(client, 'secrets', [{ name: 'presign', value: secret }]);
    const { rows } = await client.query(`SELECT value FROM secrets WHERE name = 'presign'`);
    await client.query('COMMIT');
    const otherSecret = secret !== null && !secret.equals(rows[0]?.value);
    return { ...copied, webhooks, otherSecret };
  } catch (error) {
    throw fromPostgres(error);
  } finally {
    embedded.close();
    await client.end();
  }
}

/** Returns how many rows are new. */
async function copy(
  client: pg.Client,
  table: string,
  rows: Iterable<Row>,
  { rowsAtOnce = ROWS_AT_ONCE, where = 'true' }: { rowsAtOnce?: number; where?: string } = {},
): Promise<number> {
  const { rows: found } = await client.query<{ name: string }>(
    `SELECT column_name AS name FROM information_schema.columns WHERE table_schema = 'undertone' AND table_name = $1`,
    [table],
  );
  const known = found.map(({ name }) => name);
  let copied = 0;
  for (const batch of batches(rows, rowsAtOnce)) {
    const columns = Object.keys(batch[0] ?? {}).filter((name) => known.includes(name));
    const { rowCount } = await client.query(
      `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::${table}, $1)
       WHERE ${where}
       ON CONFLICT DO NOTHING`,
      [JSON.stringify(batch)],
    );
    copied += rowCount ?? 0;
  }
  return copied;
}

function* batches(rows: Iterable<Row>, rowsAtOnce: number): Generator<Row[]> {
  let batch: Row[] = [];
  for (const row of rows) {
    batch.push(Object.fromEntries(Object.entries(row).map(([name, value]) => [name, asPostgres(value)])));
    if (batch.length < rowsAtOnce) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** PostgreSQL's text form of bytes. */
function asPostgres(value: unknown): unknown {
  return value instanceof Uint8Array ? `\\x${Buffer.from(value).toString('hex')}` : value;
}

function countUnfinished(embedded: DatabaseSync, now: number): number {
  const row = embedded
    .prepare(
      `SELECT count(*) AS count FROM requests WHERE state IN ('uploading', 'queued', 'processing') AND expires_at > ?`,
    )
    .get(now);
  return (row as { count: number }).count;
}
