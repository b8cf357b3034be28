import { type Allowance, type Buckets, TokenBuckets, toAllowance } from '../../http/rate-limit.ts';
import { StoreUnavailableError } from '../unavailable.ts';
import type { PostgresDatabase } from './database.ts';

/** Token buckets that all processes share. While the database is away each process counts for itself. */
export class PostgresBuckets implements Buckets {
  readonly #database: PostgresDatabase;
  readonly #kind: string;
  readonly #perMinute: number;
  readonly #own: TokenBuckets;

  constructor(database: PostgresDatabase, kind: string, perMinute: number) {
    this.#database = database;
    this.#kind = kind;
    this.#perMinute = perMinute;
    this.#own = new TokenBuckets(perMinute);
  }

  async take(name: string): Promise<Allowance> {
    const refilled = `least(:perMinute::float8, bucket.tokens + (:now - bucket.at) * :perMinute::float8 / 60000)`;
    try {
      const row = await this.#database.get<{ tokens: number; allowed: boolean }>(
        `INSERT INTO rate_limits AS bucket (name, tokens, allowed, at)
         VALUES (:name, :perMinute::float8 - 1, true, :now)
         ON CONFLICT (name) DO UPDATE SET
           tokens = ${refilled} - (${refilled} >= 1)::int, allowed = ${refilled} >= 1, at = :now
         RETURNING tokens, allowed`,
        { name: `${this.#kind} ${name}`, perMinute: this.#perMinute },
      );
      return toAllowance(row?.allowed ?? true, row?.tokens ?? 0, this.#perMinute);
    } catch (error) {
      if (error instanceof StoreUnavailableError) return this.#own.take(name);
      throw error;
    }
  }
}
