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

/** One bucket of `perMinute` tokens for each name, refilled steadily: bursts are fine, the average is bounded. */
export class TokenBuckets {
  readonly #perMinute: number;
  readonly #now: () => number;
  readonly #buckets = new Map<string, { tokens: number; at: number }>();

  constructor(perMinute: number, now: () => number = () => performance.now()) {
    this.#perMinute = perMinute;
    this.#now = now;
  }

  take(name: string): Allowance {
    const now = this.#now();
    const perSecond = this.#perMinute / 60;
    const bucket = this.#buckets.get(name) ?? { tokens: this.#perMinute, at: now };
    const refilled = Math.min(this.#perMinute, bucket.tokens + ((now - bucket.at) / 1000) * perSecond);
    const allowed = refilled >= 1;
    const tokens = allowed ? refilled - 1 : refilled;
    this.#buckets.set(name, { tokens, at: now });
    return {
      allowed,
      limit: this.#perMinute,
      remaining: Math.floor(tokens),
      resetSeconds: Math.ceil((this.#perMinute - tokens) / perSecond),
      retryAfterSeconds: Math.max(0, (1 - tokens) / perSecond),
    };
  }
}
