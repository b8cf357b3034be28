import type { FastifyInstance } from 'fastify';
import { retryLater } from '../problems.ts';

declare module 'fastify' {
  interface FastifyInstance {
    countRequest: CountRequest;
  }
}

/** Counts a request of a key. Throws the problem when there are too many. */
type CountRequest = (callerId: string) => Promise<void>;

/**
 * Counts every request that carries a key, in one bucket for each key. `app.countRequest` is for requests that pass no
 * HTTP hook.
 */
export function limitRates(app: FastifyInstance, perMinute: number, makeBuckets: MakeBuckets): void {
  if (perMinute === 0) {
    app.decorate('countRequest', async () => undefined);
    return;
  }
  const buckets = makeBuckets('key', perMinute);
  const requireAllowed = ({ allowed, limit, retryAfterSeconds }: Allowance) => {
    if (allowed) return;
    const detail = `This key may send ${limit} requests per minute. Try again later.`;
    throw retryLater('rate_limited', detail, retryAfterSeconds);
  };
  app.addHook('onRequest', async (request, reply) => {
    if (request.caller === null) return;
    const allowance = await buckets.take(request.caller.id);
    reply.headers({
      'ratelimit-limit': allowance.limit,
      'ratelimit-remaining': allowance.remaining,
      'ratelimit-reset': allowance.resetSeconds,
    });
    requireAllowed(allowance);
  });
  app.decorate('countRequest', async (callerId) => requireAllowed(await buckets.take(callerId)));
}

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

/** Takes one token; in memory, or where several processes share them. */
export interface Buckets {
  take(name: string): Allowance | Promise<Allowance>;
}

/** Keys have one limit and addresses that send wrong keys another. */
export type MakeBuckets = (kind: 'key' | 'address', perMinute: number) => Buckets;

/** Names can be addresses of anybody: the buckets longest unused are forgotten, which only fills them up again. */
const MAX_BUCKETS = 10_000;

/** One bucket of `perMinute` tokens for each name, refilled steadily: bursts are fine, the average is bounded. */
export class TokenBuckets implements Buckets {
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
    this.#buckets.delete(name); // last in the map: the first is the one longest unused
    this.#buckets.set(name, { tokens, at: now });
    if (this.#buckets.size > MAX_BUCKETS) this.#buckets.delete(this.#buckets.keys().next().value ?? name);
    return toAllowance(allowed, tokens, this.#perMinute);
  }
}

/** `tokens`: what is left. */
export function toAllowance(allowed: boolean, tokens: number, perMinute: number): Allowance {
  const perSecond = perMinute / 60;
  return {
    allowed,
    limit: perMinute,
    remaining: Math.floor(tokens),
    resetSeconds: Math.ceil((perMinute - tokens) / perSecond),
    retryAfterSeconds: Math.max(0, (1 - tokens) / perSecond),
  };
}
