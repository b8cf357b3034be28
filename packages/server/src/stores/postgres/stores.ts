import { randomBytes } from 'node:crypto';
import type { MakeBuckets } from '../../http/rate-limit.ts';
import type { RequestEvents } from '../request-store.ts';
import type { Stores } from '../sqlite/local-stores.ts';
import { PostgresBuckets } from './buckets.ts';
import { PostgresDatabase, type PostgresOptions } from './database.ts';
import { PostgresEvents } from './events.ts';
import { PostgresKeyStore } from './keys.ts';
import { migratePostgres } from './migrate.ts';
import { PostgresRequestStore } from './requests.ts';
import { PostgresWebhookStore } from './webhooks.ts';

export interface PostgresStores extends Stores {
  readonly database: PostgresDatabase;
  /** Rate limits that all processes share. */
  readonly makeBuckets: MakeBuckets;
  /** What all processes sign with; made by the first that asks. */
  secret(): Promise<Buffer>;
  /** Calls back when another process did something that matters here. */
  listen(events: RequestEvents): void;
  /** True in one process, once in each period: it does the work for all of them. */
  takeTurn(task: string, everyMs: number): Promise<boolean>;
}

/** Keys and requests in PostgreSQL, which any number of processes share. Brings the database up to date first. */
export async function openPostgresStores(options: PostgresOptions): Promise<PostgresStores> {
  await migratePostgres(options.url);
  const database = new PostgresDatabase(options);
  const events = new PostgresEvents(options.url);
  return {
    database,
    requests: new PostgresRequestStore(database),
    keys: new PostgresKeyStore(database),
    webhooks: new PostgresWebhookStore(database),
    makeBuckets: (kind, perMinute) => new PostgresBuckets(database, kind, perMinute),
    secret: () => readSecret(database),
    listen: (listener) => events.start(listener),
    takeTurn: async (task, everyMs) =>
      (await database.run(
        `INSERT INTO periodic_tasks VALUES (:task, :now)
         ON CONFLICT (name) DO UPDATE SET begun_at = excluded.begun_at
         WHERE periodic_tasks.begun_at <= excluded.begun_at - :everyMs::bigint`,
        { task, everyMs },
      )) > 0,
    close: async () => {
      await events.close();
      await database.close();
    },
  };
}

async function readSecret(database: PostgresDatabase): Promise<Buffer> {
  const value = randomBytes(32);
  await database.run(`INSERT INTO secrets VALUES ('presign', :value) ON CONFLICT (name) DO NOTHING`, {
    value,
  });
  const kept = await database.get<{ value: Buffer }>(`SELECT value FROM secrets WHERE name = 'presign'`);
  return (kept as { value: Buffer }).value;
}
