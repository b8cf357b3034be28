import pg from 'pg';
import { fromPostgres } from '../errors.ts';
import { connectionOptions } from './database.ts';
import { schemaOf } from './migrate.ts';

const CONNECT_MS = 5_000;

export interface PostgresInspection {
  /** Such as `15.16`. */
  readonly version: string;
  readonly majorVersion: number;
  readonly schema: { readonly done: number; readonly newest: number };
  /** True if our schema can be created in this database. */
  readonly mayCreate: boolean;
  /** Our tables that this user may not read and write. */
  readonly closedTables: readonly string[];
  readonly readOnly: boolean;
  /** Its clock minus ours. */
  readonly clockAheadMs: number;
}

/** For `undertone doctor`. Changes nothing; rejects with StoreUnavailableError if the cause is known. */
export async function inspectPostgres(url: string): Promise<PostgresInspection> {
  const client = new pg.Client({ ...connectionOptions(url), connectionTimeoutMillis: CONNECT_MS });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const asked = Date.now();
    const { rows } = await client.query<{
      version: string;
      number: number;
      may_create: boolean;
      read_only: boolean;
      clock: number;
    }>(
      `SELECT split_part(current_setting('server_version'), ' ', 1) AS version,
         current_setting('server_version_num')::int AS number,
         has_database_privilege(current_database(), 'CREATE') AS may_create,
         current_setting('transaction_read_only') = 'on' AS read_only,
         extract(epoch FROM clock_timestamp())::float8 * 1000 AS clock`,
    );
    const answered = Date.now();
    const [found] = rows as [(typeof rows)[0]];
    const closed = await client.query<{ name: string }>(
      `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'undertone'
         AND NOT (has_schema_privilege('undertone', 'USAGE') AND (
           SELECT bool_and(has_table_privilege(format('%I.%I', schemaname, tablename), action))
           FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS action))
       ORDER BY name`,
    );
    const closedTables = closed.rows.map(({ name }) => name);
    return {
      version: found.version,
      majorVersion: Math.floor(found.number / 10_000),
      schema: closedTables.includes('schema_version') ? { done: 0, newest: 0 } : await schemaOf(client),
      mayCreate: found.may_create,
      closedTables,
      readOnly: found.read_only,
      clockAheadMs: found.clock - (asked + answered) / 2,
    };
  } catch (error) {
    throw fromPostgres(error);
  } finally {
    await client.end();
  }
}
