import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLocked } from '../../storage-trouble.ts';

const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;

/**
 * The database as the asynch stores use it. SQLite waits for a lock by holding the thread, which would hold every
 * request with it; here the wait is ours, between the tries, and ends with the error after `patienceMs`.
 */
export class PatientDatabase {
  readonly #database: DatabaseSync;
  readonly #patienceMs: number;
  readonly #statements = new Map<string, StatementSync>();

  constructor(database: DatabaseSync, { patienceMs = 3_000 } = {}) {
    this.#database = database;
    this.#patienceMs = patienceMs;
    // Results are zeroed when they are erased, not only forgotten.
    database.exec('PRAGMA busy_timeout = 0; PRAGMA secure_delete = ON;');
  }

  /** One statement. Returns how many rows it changed. */
  run(sql: string, values: Values = {}): Promise<number> {
    return this.#patiently(() => Number(this.#prepared(sql).run(values).changes));
  }

  get<Row>(sql: string, values: Values = {}): Promise<Row | undefined> {
    return this.#patiently(() => this.#prepared(sql).get(values) as Row | undefined);
  }

  all<Row>(sql: string, values: Values = {}): Promise<Row[]> {
    return this.#patiently(() => this.#prepared(sql).all(values) as Row[]);
  }

  /** All of it or nothing. `work` runs without a pause, so nobody else's statements come in between. */
  transaction<T>(work: (statement: (sql: string) => StatementSync) => T): Promise<T> {
    return this.#patiently(() => {
      this.#database.exec('BEGIN IMMEDIATE');
      try {
        const value = work((sql) => this.#prepared(sql));
        this.#database.exec('COMMIT');
        return value;
      } catch (error) {
        if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
        throw error;
      }
    });
  }

  /** What was erased stays in the log of the database until that is emptied. */
  async emptyLog(): Promise<void> {
    await this.#patiently(() => this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)'));
  }

  async #patiently<T>(work: () => T): Promise<T> {
    const deadline = performance.now() + this.#patienceMs;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      try {
        return work();
      } catch (error) {
        if (!isLocked(error) || performance.now() > deadline) throw error;
      }
      await sleep(pause);
    }
  }

  #prepared(sql: string): StatementSync {
    const known = this.#statements.get(sql) ?? this.#database.prepare(sql);
    this.#statements.set(sql, known);
    return known;
  }
}

type Values = Record<string, SQLInputValue>;
