import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { SettingsError } from '../../settings.ts';
import { fromPostgres } from '../errors.ts';
import { connectionOptions } from './database.ts';

/** Any number, the same in every process, and not that of migrations. */
const PROCESS_LOCK = 7_468_303;
const CONNECT_MS = 5_000;
const RECONNECT_MS = 1_000;
const CLOSE_MS = 500;

export class SecondProcessError extends SettingsError {
  constructor() {
    super([
      'another Undertone server uses this database, and SERVICE_SINGLE_PROCESS=true allows one only; stop the other one, or set SERVICE_S3_BUCKET for both',
    ]);
  }
}

/**
 * Keeps a second server away from a database whose recordings are in the data folder of the first one. A session of the
 * database holds the lock, so that a crash frees it at once. A session that breaks is replaced. `onLost`: another process
 * took the lock in between, and this one must stop.
 */
export async function lockForOneProcess(
  url: string,
  onLost: (error: SecondProcessError) => void,
): Promise<() => Promise<void>> {
  const closed = new AbortController();
  let client = await lock(url);
  watch();
  return async () => {
    closed.abort();
    // A connection that hangs never closes.
    await Promise.race([client.end().catch(() => undefined), sleep(CLOSE_MS, undefined, { ref: false })]);
  };

  function watch(): void {
    client.once('end', () => void replace());
  }
  async function replace(): Promise<void> {
    while (!closed.signal.aborted) {
      try {
        client = await lock(url);
        return watch();
      } catch (error) {
        if (error instanceof SecondProcessError) return onLost(error);
      }
      await sleep(RECONNECT_MS, undefined, { ref: false });
    }
  }
}

async function lock(url: string): Promise<pg.Client> {
  const client = new pg.Client({ ...connectionOptions(url), connectionTimeoutMillis: CONNECT_MS });
  // `end` follows.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query('SELECT pg_try_advisory_lock($1) AS locked', [PROCESS_LOCK]);
    if (rows[0]?.locked === true) return client;
  } catch (error) {
    throw fromPostgres(error);
  }
  await client.end();
  throw new SecondProcessError();
}
