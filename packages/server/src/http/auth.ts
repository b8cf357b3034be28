import { API_KEY_HEADER } from '@undertone/contract';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Authenticator } from '../keys/authenticator.ts';
import { ProblemError, retryLater } from '../problems.ts';
import type { Caller } from '../stores/key-store.ts';
import type { MakeBuckets } from './rate-limit.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Whose key this request carries; null on the few routes that need none. */
    caller: Caller | null;
  }
  interface FastifyContextConfig {
    /** The route needs no API key. */
    withoutKey?: boolean;
  }
}

const WRONG_KEYS_PER_MINUTE = 20;

/** Runs before any byte of a body is read, and for paths that do not exist as well: without a key nothing shows. */
export function requireKeys(
  app: FastifyInstance,
  authenticator: Authenticator,
  makeBuckets: MakeBuckets,
): void {
  const wrongKeys = makeBuckets('address', WRONG_KEYS_PER_MINUTE);
  app.decorateRequest('caller', null);
  app.addHook('onRequest', async (request: FastifyRequest) => {
    if (request.routeOptions.config.withoutKey) return;
    const key = keyOf(request);
    if (key === undefined) {
      throw new ProblemError(
        'missing_api_key',
        `Send your API key in the header ${API_KEY_HEADER}. \`undertone keys create\` makes one.`,
      );
    }
    request.caller = await authenticator.authenticate(key);
    if (request.caller !== null) return;
    // Only after the look-up: a right key is never affected by the wrong ones of others behind the same address.
    const { allowed, retryAfterSeconds } = await wrongKeys.take(request.ip);
    if (!allowed)
      throw retryLater('rate_limited', 'Too many wrong API keys from this address.', retryAfterSeconds);
    throw new ProblemError('invalid_api_key', 'This API key is unknown, expired or revoked.');
  });
}

function keyOf({ headers }: FastifyRequest): string | undefined {
  const given = headers[API_KEY_HEADER] ?? /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
  return given === '' ? undefined : (given as string | undefined);
}
