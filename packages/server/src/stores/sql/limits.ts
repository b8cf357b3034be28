// Token buckets for rate limits: in memory, or in PostgreSQL where several processes share them.
import { StoreUnavailableError } from '../errors.ts';
import type { SqlDatabase } from './database.ts';

export interface Allowance {
  readonly allowed: boolean;
  readonly limit: number;
  /** Requests that would be allowed right now. */
  readonly remaining: number;
  /** Seconds until the bucket is full again. */
  readonly resetSeconds: number;
  /** Seconds until one more request is allowed. */
  readonly retryAfterSeconds: number;
}

export interface Buckets {
  /** Takes one token from the bucket with this name, which holds `perMinute` of them. */
  take(name: string, perMinute: number): Allowance | Promise<Allowance>;
}

/** Of keys, and of addresses that send wrong keys. */
export type MakeBuckets = (kind: 'key' | 'address') => Buckets;

/** Anybody's address can be a name: the least recently used buckets are dropped, which only refills them. */
const MAX_BUCKETS = 10_000;

/** One bucket for each name, refilled steadily: bursts are fine, the average is bounded. */
export class TokenBuckets implements Buckets {
  readonly #now: () => number;
  readonly #buckets = new Map<string, { tokens: number; at: number }>();

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  take(name: string, perMinute: number): Allowance {
    const now = this.#now();
    const perSecond = perMinute / 60;
    const bucket = this.#buckets.get(name) ?? { tokens: perMinute, at: now };
    const refilled = Math.min(perMinute, bucket.tokens + ((now - bucket.at) / 1000) * perSecond);
    const allowed = refilled >= 1;
    const tokens = allowed ? refilled - 1 : refilled;
    this.#buckets.delete(name); // moves it to the end of the map: the first is the least recently used
    this.#buckets.set(name, { tokens, at: now });
    if (this.#buckets.size > MAX_BUCKETS) this.#buckets.delete(this.#buckets.keys().next().value ?? name);
    return toAllowance(allowed, tokens, perMinute);
  }
}

/** Buckets that all processes share. While the database is unavailable each process counts for itself. */
export class SharedBuckets implements Buckets {
  readonly #database: SqlDatabase;
  readonly #kind: string;
  readonly #own = new TokenBuckets();

  constructor(database: SqlDatabase, kind: string) {
    this.#database = database;
    this.#kind = kind;
  }

  async take(name: string, perMinute: number): Promise<Allowance> {
    const refilled = `least(:perMinute::float8, bucket.tokens + (:now - bucket.at) * :perMinute::float8 / 60000)`;
    try {
      const [row] = await this.#database.query<{ tokens: number; allowed: boolean }>(
        `INSERT INTO rate_limits AS bucket (name, tokens, allowed, at)
         VALUES (:name, :perMinute::float8 - 1, true, :now)
         ON CONFLICT (name) DO UPDATE SET
           tokens = ${refilled} - (${refilled} >= 1)::int, allowed = ${refilled} >= 1, at = :now
         RETURNING tokens, allowed`,
        { name: `${this.#kind} ${name}`, perMinute },
      );
      return toAllowance(row?.allowed ?? true, row?.tokens ?? 0, perMinute);
    } catch (error) {
      if (error instanceof StoreUnavailableError) return this.#own.take(name, perMinute);
      throw error;
    }
  }
}

/** `tokens`: those that remain. */
function toAllowance(allowed: boolean, tokens: number, perMinute: number): Allowance {
  const perSecond = perMinute / 60;
  return {
    allowed,
    limit: perMinute,
    remaining: Math.floor(tokens),
    resetSeconds: Math.ceil((perMinute - tokens) / perSecond),
    retryAfterSeconds: Math.max(0, (1 - tokens) / perSecond),
  };
}
