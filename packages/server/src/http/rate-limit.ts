import type { FastifyInstance } from 'fastify';
import { retryLater } from '../problems.ts';
import { TokenBuckets } from './token-bucket.ts';

/** Counts every request that carries a key. The names of the buckets are key ids, so there are as many as keys. */
export function limitRates(app: FastifyInstance, perMinute: number): void {
  if (perMinute === 0) return;
  const buckets = new TokenBuckets(perMinute);
  app.addHook('onRequest', async (request, reply) => {
    if (request.caller === null) return;
    const allowance = buckets.take(request.caller.id);
    reply.headers({
      'ratelimit-limit': allowance.limit,
      'ratelimit-remaining': allowance.remaining,
      'ratelimit-reset': allowance.resetSeconds,
    });
    if (!allowance.allowed) {
      const detail = `This key may send ${allowance.limit} requests a minute.`;
      throw retryLater('rate_limited', detail, allowance.retryAfterSeconds);
    }
  });
}
