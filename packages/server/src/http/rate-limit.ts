import type { FastifyInstance } from 'fastify';
import { retryLater } from '../problems.ts';
import type { Allowance, MakeBuckets } from '../stores/sql/limits.ts';

/** Counts a request of a key, and throws the problem when there are too many. */
export type CountRequest = (callerId: string) => Promise<void>;

/**
 * Counts every request that carries a key. The names of the buckets are key ids, so there are as many as keys. The
 * returned function is for what is a request, but not one over HTTP.
 */
export function limitRates(app: FastifyInstance, perMinute: number, makeBuckets: MakeBuckets): CountRequest {
  if (perMinute === 0) return async () => undefined;
  const buckets = makeBuckets('key', perMinute);
  const requireAllowed = ({ allowed, limit, retryAfterSeconds }: Allowance) => {
    if (allowed) return;
    throw retryLater('rate_limited', `This key may send ${limit} requests a minute.`, retryAfterSeconds);
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
  return async (callerId) => requireAllowed(await buckets.take(callerId));
}
