import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { asUnavailable, isBusy } from '../files/errors.ts';

const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 50;
/** Of the time that a call may take; the rest is for the last try itself. */
const RETRY_SHARE = 0.85;

export type Values = Record<string, SQLInputValue>;
export type Prepare = (sql: string) => StatementSync;

/**
 * The database as the stores use it. SQLite itself waits for a lock by blocking the thread; here the wait is between two
 * tries, so that reads are answered while a write waits.
 */
export class RetryingDatabase {
  readonly #database: DatabaseSync;
  readonly #retryMs: number;
  readonly #statements = new Map<string, StatementSync>();

  constructor(database: DatabaseSync, answerMs: number) {
    this.#database = database;
    this.#retryMs = answerMs * RETRY_SHARE;
  }

  /** One statement. Returns how many rows it changed. */
  run(sql: string, values: Values = {}): Promise<number> {
    return this.#retry(() => Number(this.#prepare(sql).run(values).changes));
  }

  /** The first row. Not by `StatementSync.get`: with RETURNING it hides that the commit failed. */
  async get<Row>(sql: string, values: Values = {}): Promise<Row | undefined> {
    return (await this.all<Row>(sql, values))[0];
  }

  all<Row>(sql: string, values: Values = {}): Promise<Row[]> {
    return this.#retry(() => this.#prepare(sql).all(values) as Row[]);
  }

  /** All of it or nothing. `work` runs without a pause, so no other statement comes in between. */
  transaction<T>(work: (prepare: Prepare) => T): Promise<T> {
    return this.#retry(() => transaction(this.#database, () => work((sql) => this.#prepare(sql))));
  }

  #retry<T>(work: () => T): Promise<T> {
    return retryWhileBusy(work, this.#retryMs);
  }

  #prepare(sql: string): StatementSync {
    const known = this.#statements.get(sql) ?? this.#database.prepare(sql);
    this.#statements.set(sql, known);
    return known;
  }
}

/** BEGIN IMMEDIATE: a transaction that will write waits for the lock before it reads anything. */
export function transaction<T>(database: DatabaseSync, work: () => T): T {
  database.exec('BEGIN IMMEDIATE');
  try {
    const value = work();
    database.exec('COMMIT');
    return value;
  } catch (error) {
    // After an I/O error SQLite has rolled back by itself.
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/** Tries again while another process writes; gives up with StoreUnavailableError. */
export async function retryWhileBusy<T>(work: () => T, retryMs: number): Promise<T> {
  const deadline = performance.now() + retryMs;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() + pause > deadline) throw asUnavailable(error);
    }
    await sleep(pause);
  }
}
