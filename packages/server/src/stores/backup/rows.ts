// Copies rows between an embedded database and PostgreSQL. Both have the same tables with the same columns.
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import type pg from 'pg';

/** Referenced tables first. Rate limits and the like are not worth copying. */
export const TABLES = [
  'keys',
  'owners',
  'audio_use',
  'requests',
  'parts',
  'results',
  'result_chunks',
  'webhooks',
] as const;

export type Table = (typeof TABLES)[number] | 'secrets';
export type Row = Record<string, unknown>;

const ROWS_AT_ONCE = 500;
/** Rows of results have up to a few hundred kB each. */
const LARGE_ROWS_AT_ONCE = 10;

function rowsAtOnce(table: Table): number {
  return table === 'results' || table === 'result_chunks' ? LARGE_ROWS_AT_ONCE : ROWS_AT_ONCE;
}

/** Existing rows stay as they are. Returns how many are new. `where` leaves out some of the others. */
export async function copyToPostgres(
  client: pg.Client,
  table: Table,
  rows: Iterable<Row>,
  where = 'true',
): Promise<number> {
  const known = await columnsOf(client, table);
  let copied = 0;
  for (const batch of batches(rows, rowsAtOnce(table))) {
    const columns = Object.keys(batch[0] ?? {}).filter((name) => known.includes(name));
    const { rowCount } = await client.query(
      `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::${table}, $1)
       WHERE ${where} ON CONFLICT DO NOTHING`,
      [JSON.stringify(batch)],
    );
    copied += rowCount ?? 0;
  }
  return copied;
}

/** Part of a transaction of the client, so that all tables are of the same moment. */
export async function copyFromPostgres(
  client: pg.Client,
  table: Table,
  embedded: DatabaseSync,
): Promise<number> {
  const names = embedded.prepare('SELECT name FROM pragma_table_info(?)').all(table);
  const known = await columnsOf(client, table);
  const columns = names.map(({ name }) => String(name)).filter((name) => known.includes(name));
  const insert = embedded.prepare(
    `INSERT INTO ${table} (${columns}) VALUES (${columns.map((name) => `:${name}`)})`,
  );
  await client.query(`DECLARE rows NO SCROLL CURSOR FOR SELECT ${columns} FROM ${table}`);
  let copied = 0;
  for (;;) {
    const { rows } = await client.query<Record<string, SQLInputValue>>(
      `FETCH ${rowsAtOnce(table)} FROM rows`,
    );
    for (const row of rows) insert.run(row);
    copied += rows.length;
    if (rows.length === 0) break;
  }
  await client.query('CLOSE rows');
  return copied;
}

async function columnsOf(client: pg.Client, table: Table): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT column_name AS name FROM information_schema.columns WHERE table_schema = 'undertone' AND table_name = $1`,
    [table],
  );
  return rows.map(({ name }) => name);
}

function* batches(rows: Iterable<Row>, size: number): Generator<Row[]> {
  let batch: Row[] = [];
  for (const row of rows) {
    batch.push(Object.fromEntries(Object.entries(row).map(([name, value]) => [name, asPostgres(value)])));
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** PostgreSQL's text form of bytes. */
function asPostgres(value: unknown): unknown {
  return value instanceof Uint8Array ? `\\x${Buffer.from(value).toString('hex')}` : value;
}
