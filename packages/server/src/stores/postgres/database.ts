import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { ANSWER_MS, StoreUnavailableError } from '../unavailable.ts';
import { asUnavailable, isConflict, isFromServer } from './errors.ts';

/** The server gives up a little earlier than we do, so that what we were told has failed does not happen afterwards. */
const EARLIER_MS = 100;
const CONNECTIONS = 10;
const CLOSE_MS = 2_000;
const RETRY_PAUSE_MS = 20;

/** By the clock of the database, which all processes share. */
const DATABASE_TIME = '(extract(epoch FROM now()) * 1000)::bigint';

export type Values = Record<string, unknown>;
/** One statement with `:names` for its values; `:now` is the time. */
export type Query = <Row = object>(sql: string, values?: Values) => Promise<{ rows: Row[]; count: number }>;

export interface PostgresOptions {
  readonly url: string;
  /** Tests have a clock of their own. */
  readonly now?: (() => number) | undefined;
  /** Longer in tests that are not about it. */
  readonly answerMs?: number | undefined;
}

/**
 * The database as the stores use it: a pool of connections, each call within a second or StoreUnavailableError. A
 * connection that failed is not used again; the next call opens another, so that they come back with the database.
 */
export class PostgresDatabase {
  readonly #pool: pg.Pool;
  readonly #options: PostgresOptions;
  readonly #answerMs: number;
  #lastUnavailable = Number.NEGATIVE_INFINITY;

  constructor(options: PostgresOptions) {
    this.#options = options;
    this.#answerMs = options.answerMs ?? ANSWER_MS;
    this.#pool = new pg.Pool({
      ...connectionOptions(options.url),
      max: CONNECTIONS,
      connectionTimeoutMillis: this.#answerMs,
      statement_timeout: this.#answerMs - EARLIER_MS,
    });
    // An idle connection broke; the pool has already dropped it.
    this.#pool.on('error', () => undefined);
    // One in use broke between two statements: the next one says so.
    this.#pool.on('connect', (client) => client.on('error', () => undefined));
  }

  /** Milliseconds since the database last could not be reached from here. */
  get availableFor(): number {
    return performance.now() - this.#lastUnavailable;
  }

  /** One statement. Returns how many rows it changed or read. */
  async run(sql: string, values?: Values): Promise<number> {
    return (await this.#use((query) => query(sql, values))).count;
  }

  async all<Row>(sql: string, values?: Values): Promise<Row[]> {
    return (await this.#use((query) => query<Row>(sql, values))).rows;
  }

  async get<Row>(sql: string, values?: Values): Promise<Row | undefined> {
    return (await this.all<Row>(sql, values))[0];
  }

  /** All of it or nothing. Runs again from the beginning when it met another transaction. */
  transaction<T>(work: (query: Query) => Promise<T>): Promise<T> {
    return this.#use(async (query) => {
      await query('BEGIN');
      const value = await work(query).catch(async (error: unknown) => {
        if (isFromServer(error)) await query('ROLLBACK');
        throw error;
      });
      await query('COMMIT');
      return value;
    });
  }

  async close(): Promise<void> {
    if (this.#pool.ending) return;
    // A connection that hangs cannot be waited for.
    await Promise.race([this.#pool.end(), sleep(CLOSE_MS, undefined, { ref: false })]);
  }

  async #use<T>(work: (query: Query) => Promise<T>): Promise<T> {
    const deadline = performance.now() + this.#answerMs;
    for (;;) {
      try {
        return await this.#once(work, deadline);
      } catch (error) {
        if (isConflict(error) && performance.now() + RETRY_PAUSE_MS < deadline) {
          await sleep(RETRY_PAUSE_MS * Math.random());
          continue;
        }
        const known = asUnavailable(error);
        if (known instanceof StoreUnavailableError) this.#lastUnavailable = performance.now();
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
      const { text, names } = positional(sql, this.#options.now === undefined);
      const given = { now: this.#options.now?.(), ...values };
      const answer = await client.query(
        text,
        names.map((name) => given[name as keyof typeof given]),
      );
      return { rows: answer.rows, count: answer.rowCount ?? 0 };
    };
    try {
      const value = await before(deadline, work(query));
      client.release();
      return value;
    } catch (error) {
      // After anything but an answer of the server nobody knows what the connection is doing.
      client.release(!isFromServer(error));
      throw error;
    }
  }
}

export function connectionOptions(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: 'undertone',
    keepAlive: true,
    // Tables of our own names, in a schema of their own.
    options: '-c search_path=undertone',
    types: { getTypeParser },
  };
}

/** BIGINT as a number: all of ours are times or bytes, far below 2^53. */
const getTypeParser: typeof pg.types.getTypeParser = (oid: number, format?: unknown) =>
  oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format as 'text');

async function before<T>(deadline: number, promise: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timeOut = () => late.reject(new StoreUnavailableError('its database answers too slowly'));
  // In the next round of the event loop: the answer may have come while this thread was busy.
  const timer = setTimeout(() => setImmediate(timeOut), Math.max(0, deadline - performance.now()));
  promise.catch(() => undefined);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

const compiled = new Map<string, { text: string; names: string[] }>();

/** `:name` as `$1`, `$2`, ...; casts (`::bigint`) stay. */
function positional(sql: string, databaseTime: boolean): { text: string; names: string[] } {
  const key = `${databaseTime} ${sql}`;
  const known = compiled.get(key);
  if (known !== undefined) return known;
  const names: string[] = [];
  const text = sql.replace(/(?<!:):([a-z]\w*)/gi, (_, name: string) => {
    if (name === 'now' && databaseTime) return DATABASE_TIME;
    if (!names.includes(name)) names.push(name);
    // A test's time says its type, as the expression does.
    return `$${names.indexOf(name) + 1}${name === 'now' ? '::bigint' : ''}`;
  });
  compiled.set(key, { text, names });
  return { text, names };
}
