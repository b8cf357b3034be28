import { randomBytes } from 'node:crypto';
import type { RequestEvents, SqlStores } from '../contracts.ts';
import { type MakeBuckets, SharedBuckets } from '../sql/limits.ts';
import { storesOn } from '../sql/stores.ts';
import { OUTAGE_MS, PostgresDatabase, type PostgresOptions } from './database.ts';
import { PostgresEvents } from './events.ts';
import { migratePostgres } from './migrate.ts';

/** What only several processes need. */
export interface SharedStores {
  /** Rate limits that all processes share. */
  readonly makeBuckets: MakeBuckets;
  /** Calls back when another process queues or ends a request. */
  listen(events: RequestEvents): void;
  /** True in one process, once per period: it runs the task for all of them. */
  takeTurn(task: string, everyMs: number): Promise<boolean>;
}

export interface PostgresStores extends SqlStores, SharedStores {
  readonly database: PostgresDatabase;
  /** Signs for all processes; the first one that asks creates it. */
  secret(): Promise<Buffer>;
}

/** The stores in PostgreSQL, for any number of processes. Migrates the database first. */
export async function openPostgresStores(options: PostgresOptions): Promise<PostgresStores> {
  const start = performance.now();
  await migratePostgres(options.url);
  const afterOutage = options.afterOutage || performance.now() - start > OUTAGE_MS;
  const database = new PostgresDatabase({ ...options, afterOutage });
  const events = new PostgresEvents(options.url);
  return {
    ...storesOn(database),
    database,
    makeBuckets: (kind) => new SharedBuckets(database, kind),
    secret: () => readSecret(database),
    listen: (listener) => events.start(listener),
    takeTurn: async (task, everyMs) => {
      const begun = await database.query(
        `INSERT INTO periodic_tasks VALUES (:task, :now)
         ON CONFLICT (name) DO UPDATE SET begun_at = excluded.begun_at
         WHERE periodic_tasks.begun_at <= excluded.begun_at - :everyMs::bigint
           OR periodic_tasks.begun_at > excluded.begun_at + :everyMs::bigint -- the clock was set back
         RETURNING name`,
        { task, everyMs },
      );
      return begun.length > 0;
    },
    close: async () => {
      await events.close();
      await database.close();
    },
  };
}

async function readSecret(database: PostgresDatabase): Promise<Buffer> {
  await database.query(`INSERT INTO secrets VALUES ('presign', :value) ON CONFLICT (name) DO NOTHING`, {
    value: randomBytes(32),
  });
  const [row] = await database.query<{ value: Buffer }>(`SELECT value FROM secrets WHERE name = 'presign'`);
  return (row as { value: Buffer }).value;
}
