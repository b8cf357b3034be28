import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { type Budgets, budgetOf } from '../budgets.ts';
import type { SqlStores } from '../contracts.ts';
import { PARAMETER, type Query, type SqlDatabase, type SqlValue, type Values } from '../sql/database.ts';
import { storesOn } from '../sql/stores.ts';
import { SQLITE } from './dialect.ts';
import { openDatabase, retryWhileBusy } from './open.ts';

/** Share of the answer time for retries; the rest is for the last attempt itself. */
const RETRY_SHARE = 0.85;

export interface SqliteOptions extends Budgets {
  readonly dataDir: string;
  readonly now?: () => number;
}

/** The stores on the calling thread: for the command line, tests, and the store thread. */
export async function openSqliteStores(options: SqliteOptions): Promise<SqlStores> {
  return storesOn(new SqliteDatabase(await openDatabase(options.dataDir), options));
}

interface Statement {
  readonly prepared: StatementSync;
  readonly names: readonly string[];
}

/**
 * One connection, used by one call at a time. SQLite itself waits for another process's lock by blocking the thread; here
 * the wait is between two attempts, so that reads are answered while a write waits.
 */
class SqliteDatabase implements SqlDatabase {
  readonly dialect = SQLITE;
  readonly availableMs = Number.POSITIVE_INFINITY;
  readonly #connection: DatabaseSync;
  readonly #now: () => number;
  readonly #retryMs: number;
  readonly #statements = new Map<string, Statement>();
  #lastCall: Promise<unknown> = Promise.resolve();

  constructor(connection: DatabaseSync, { now = Date.now, ...budgets }: SqliteOptions) {
    this.#connection = connection;
    this.#now = now;
    this.#retryMs = budgetOf('answer', budgets) * RETRY_SHARE;
  }

  /** A statement takes as long as it takes. Only the wait for another process's lock is limited, for every kind alike. */
  within(): SqlDatabase {
    return this;
  }

  readonly query: Query = <Row>(sql: string, values?: Values) =>
    this.#retry(async () => this.#run<Row>(sql, values, this.#now));

  transaction<T>(work: (query: Query) => Promise<T>): Promise<T> {
    return this.#retry(async () => {
      const connection = this.#connection;
      // IMMEDIATE: takes the write lock before anything is read.
      connection.exec('BEGIN IMMEDIATE');
      try {
        const now = this.#now();
        const value = await work(async (sql, values) => this.#run(sql, values, () => now));
        connection.exec('COMMIT');
        return value;
      } finally {
        // After an I/O error SQLite has already rolled back.
        if (connection.isTransaction) connection.exec('ROLLBACK');
      }
    });
  }

  async close(): Promise<void> {
    if (this.#connection.isOpen) this.#connection.close();
  }

  /** By `all`, even for one row or none: `get` on a RETURNING statement hides that the commit failed. */
  #run<Row>(sql: string, values: Values = {}, now: () => number): Row[] {
    const { prepared, names } = this.#prepare(sql);
    const bound = names.map((name) => [name, name === 'now' ? now() : toSqlite(values[name])]);
    return prepared.all(Object.fromEntries(bound)) as Row[];
  }

  #retry<T>(work: () => Promise<T>): Promise<T> {
    return retryWhileBusy(() => {
      // A statement of another call must not slip into an open transaction.
      const call = this.#lastCall.then(work);
      this.#lastCall = call.catch(() => undefined);
      return call;
    }, this.#retryMs);
  }

  #prepare(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      const names = new Set(Array.from(sql.matchAll(PARAMETER), ([, name = '']) => name));
      statement = { prepared: this.#connection.prepare(sql), names: [...names] };
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

function toSqlite(value: SqlValue | undefined): SQLInputValue {
  if (typeof value === 'boolean') return Number(value);
  if (Array.isArray(value)) return JSON.stringify(value);
  return value as SQLInputValue;
}
