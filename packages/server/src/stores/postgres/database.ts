import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type Budgets, budgetOf, type CallKind } from '../budgets.ts';
import { fromPostgres, isConflict, isServerError, StoreUnavailableError } from '../errors.ts';
import { PARAMETER, type Query, type SqlDatabase, type SqlValue } from '../sql/database.ts';
import { POSTGRES } from './dialect.ts';

/** The server gives up a little earlier than we do, so that a call reported as failed does not happen afterwards. */
const EARLIER_MS = 100;
/** Calls of one kind never wait for a connection that the other kind uses. */
const CONNECTIONS = { answer: 10, long: 4 };
const CLOSE_MS = 1_000;
const RETRY_PAUSE_MS = 20;
/** Calls fail, and none is answered for this long: an outage. Less than workers need to lose a lease; they ask every second. */
export const OUTAGE_MS = 2_000;
const TOO_SLOW = 'its database answers too slowly';

/** The clock of the database, which all processes share. */
const DATABASE_TIME = '(extract(epoch FROM now()) * 1000)::bigint';

export interface PostgresOptions extends Budgets {
  readonly url: string;
  /** Tests bring their own clock. */
  readonly now?: (() => number) | undefined;
  /** Shorter in tests. */
  readonly outageMs?: number;
  /** It was unavailable until now. */
  readonly afterOutage?: boolean | undefined;
}

/**
 * A pool of connections. Each call ends within its budget or with StoreUnavailableError. A failed connection is not reused;
 * the next call opens another, so that the stores recover with the database.
 */
export class PostgresDatabase implements SqlDatabase {
  readonly dialect = POSTGRES;
  readonly #pool: pg.Pool;
  readonly #options: PostgresOptions;
  readonly #budgetMs: number;
  readonly #long: PostgresDatabase | undefined;
  /** What each connection has now, in milliseconds. */
  readonly #statementTimeouts = new WeakMap<pg.ClientBase, number>();
  #lastAnswer = Number.NEGATIVE_INFINITY;
  #failedSince = false;
  #outageEnded: number;

  constructor(options: PostgresOptions, kind: CallKind = 'answer') {
    this.#options = options;
    this.#outageEnded = options.afterOutage ? performance.now() : Number.NEGATIVE_INFINITY;
    this.#budgetMs = budgetOf(kind, options);
    this.#long = kind === 'answer' ? new PostgresDatabase(options, 'long') : undefined;
    this.#pool = new pg.Pool({
      ...connectionOptions(options.url),
      max: CONNECTIONS[kind],
      connectionTimeoutMillis: this.#budgetMs,
      onConnect: useOurSchema,
    });
    // An idle connection broke; the pool has already dropped it.
    this.#pool.on('error', () => undefined);
    // A connection in use broke between two statements: the next statement reports it.
    this.#pool.on('connect', (client) => client.on('error', () => undefined));
  }

  get availableMs(): number {
    return this.#isUnavailable() ? 0 : performance.now() - this.#outageEnded;
  }

  /** One call that fails among others that are answered is no outage. */
  #isUnavailable(): boolean {
    const { outageMs = OUTAGE_MS } = this.#options;
    return this.#failedSince && performance.now() - this.#lastAnswer > outageMs;
  }

  #noteAnswer(): void {
    if (this.#isUnavailable()) this.#outageEnded = performance.now();
    this.#lastAnswer = performance.now();
    this.#failedSince = false;
  }

  readonly query: Query = (sql, values) => this.#use((query) => query(sql, values));

  transaction<T>(work: (query: Query) => Promise<T>): Promise<T> {
    return this.#use(async (query) => {
      await query('BEGIN');
      const value = await work(query).catch(async (error: unknown) => {
        if (isServerError(error)) await query('ROLLBACK');
        throw error;
      });
      await query('COMMIT');
      return value;
    });
  }

  within(kind: CallKind): PostgresDatabase {
    return kind === 'long' && this.#long !== undefined ? this.#long : this;
  }

  async close(): Promise<void> {
    if (this.#pool.ending) return;
    // A connection that hangs never closes.
    const closed = Promise.all([this.#long?.close(), this.#pool.end()]);
    await Promise.race([closed, sleep(CLOSE_MS, undefined, { ref: false })]);
  }

  async #use<T>(work: (query: Query) => Promise<T>): Promise<T> {
    const deadline = performance.now() + this.#budgetMs;
    for (;;) {
      try {
        const value = await this.#once(work, deadline);
        this.#noteAnswer();
        return value;
      } catch (error) {
        if (isConflict(error) && performance.now() + RETRY_PAUSE_MS < deadline) {
          await sleep(RETRY_PAUSE_MS * Math.random());
          continue;
        }
        const known = fromPostgres(error);
        if (known instanceof StoreUnavailableError) this.#failedSince = true;
        else this.#noteAnswer();
        throw known;
      }
    }
  }

  async #once<T>(work: (query: Query) => Promise<T>, deadline: number): Promise<T> {
    const connecting = this.#pool.connect();
    const client = await before(deadline, connecting).catch((error: unknown) => {
      connecting.then(
        (late) => late.release(),
        () => undefined,
      );
      throw error;
    });
    const query: Query = async (sql, values = {}) => {
      await this.#limitStatement(client, sql, deadline);
      const { text, names } = positional(sql, this.#options.now === undefined);
      const given: Record<string, SqlValue | undefined> = { now: this.#options.now?.(), ...values };
      const { rows } = await client.query(
        text,
        names.map((name) => given[name]),
      );
      return rows;
    };
    try {
      const value = await before(deadline, work(query));
      client.release();
      return value;
    } catch (error) {
      // A rollback also takes back the timeout that was set within the transaction.
      this.#statementTimeouts.delete(client);
      // After anything but an answer from the server the state of the connection is unknown.
      client.release(!isServerError(error));
      throw error;
    }
  }

  /**
   * The wait for a connection and earlier statements took a part of the call's time: the server has the rest. A statement
   * that cannot end in time is not sent.
   */
  async #limitStatement(client: pg.ClientBase, sql: string, deadline: number): Promise<void> {
    // After an error in a transaction the server accepts nothing else.
    if (sql === 'ROLLBACK') return;
    const leftMs = Math.floor(deadline - performance.now()) - EARLIER_MS;
    if (leftMs <= 0) throw new StoreUnavailableError(TOO_SLOW);
    const now = this.#statementTimeouts.get(client);
    if (now !== undefined && Math.abs(now - leftMs) <= EARLIER_MS / 2) return;
    await client.query(`SET statement_timeout = ${leftMs}`);
    this.#statementTimeouts.set(client, leftMs);
  }
}

export function connectionOptions(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: 'undertone',
    keepAlive: true,
    types: { getTypeParser },
  };
}

/** Our tables have their own schema. Not an option of the connection: PgBouncer refuses those. */
export async function useOurSchema(client: pg.ClientBase): Promise<void> {
  await client.query('SET search_path = undertone');
}

/** BIGINT as a number: ours are all times or bytes, far below 2^53. */
const getTypeParser: typeof pg.types.getTypeParser = (oid: number, format?: unknown) =>
  oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format as 'text');

async function before<T>(deadline: number, promise: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timeOut = () => late.reject(new StoreUnavailableError(TOO_SLOW));
  // One turn of the event loop later: the answer may have arrived while this thread was busy.
  const timer = setTimeout(() => setImmediate(timeOut), Math.max(0, deadline - performance.now()));
  promise.catch(() => undefined);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

const compiled = new Map<string, { text: string; names: string[] }>();

/** Writes `:name` as `$1`, `$2`, ... */
function positional(sql: string, databaseTime: boolean): { text: string; names: string[] } {
  const key = `${databaseTime} ${sql}`;
  const known = compiled.get(key);
  if (known !== undefined) return known;
  const names: string[] = [];
  const text = sql.replace(PARAMETER, (_, name: string) => {
    if (name === 'now' && databaseTime) return DATABASE_TIME;
    if (!names.includes(name)) names.push(name);
    // A test's time has the type of the expression.
    return `$${names.indexOf(name) + 1}${name === 'now' ? '::bigint' : ''}`;
  });
  compiled.set(key, { text, names });
  return { text, names };
}
