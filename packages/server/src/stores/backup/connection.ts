import pg from 'pg';
import { fromPostgres, RefusedError } from '../errors.ts';
import { connectionOptions, useOurSchema } from '../postgres/database.ts';

const CONNECT_MS = 5_000;
/** The service opens its connections under this name. Ours has another one, to tell them apart. */
const SERVICE = 'undertone';

/** One transaction with a connection of its own. */
export async function inPostgres<T>(
  url: string,
  begin: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({
    ...connectionOptions(url),
    application_name: `${SERVICE} backup`,
    connectionTimeoutMillis: CONNECT_MS,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await useOurSchema(client);
    await client.query(begin);
    const value = await work(client);
    await client.query('COMMIT');
    return value;
  } catch (error) {
    throw fromPostgres(error);
  } finally {
    await client.end();
  }
}

/** A running process would not see what is written past it. */
export async function requireNoProcess(client: pg.Client): Promise<void> {
  const { rows } = await client.query(
    'SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1 LIMIT 1',
    [SERVICE],
  );
  if (rows.length > 0) {
    throw new RefusedError(
      'A server or worker is using this database. Stop all of them first, then run this again.',
    );
  }
}
