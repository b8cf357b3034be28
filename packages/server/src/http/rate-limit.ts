import type { FastifyInstance } from 'fastify';
import { retryLater } from '../problems.ts';
import type { Caller } from '../stores/contracts.ts';
import type { Allowance, MakeBuckets } from '../stores/sql/limits.ts';

declare module 'fastify' {
  interface FastifyInstance {
    countRequest: CountRequest;
  }
}

/** Counts a request of a key. Throws the problem when there are too many. */
type CountRequest = (caller: Pick<Caller, 'id' | 'limits'>) => Promise<void>;

/**
 * Counts every request that carries a key, in one bucket for each key. `app.countRequest` is for requests that pass no
 * HTTP hook.
 */
export function limitRates(app: FastifyInstance, makeBuckets: MakeBuckets): void {
  const buckets = makeBuckets('key');
  const requireAllowed = ({ allowed, limit, remaining, retryAfterSeconds }: Allowance) => {
    if (allowed) return;
    const detail = `This key may send ${limit} requests per minute. Try again later.`;
    const figures = { limit, used: limit - remaining };
    throw retryLater('rate_limited', detail, retryAfterSeconds, { figures });
  };
  app.addHook('onRequest', async ({ caller }, reply) => {
    if (caller === null || caller.limits.rate === 0) return;
    const allowance = await buckets.take(caller.id, caller.limits.rate);
    reply.headers({
      'ratelimit-limit': allowance.limit,
      'ratelimit-remaining': allowance.remaining,
      'ratelimit-reset': allowance.resetSeconds,
    });
    requireAllowed(allowance);
  });
  app.decorate('countRequest', async ({ id, limits }) => {
    if (limits.rate > 0) requireAllowed(await buckets.take(id, limits.rate));
  });
}
