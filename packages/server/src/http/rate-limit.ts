import type { FastifyInstance } from 'fastify';
import { retryLater } from '../problems.ts';
import type { Allowance, MakeBuckets } from '../stores/sql/limits.ts';

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
