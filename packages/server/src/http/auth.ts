import { API_KEY_HEADER, KEY_PROTOCOL_PREFIX } from '@undertone/contract';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ProblemError, retryLater } from '../problems.ts';
import type { Caller } from '../stores/contracts.ts';
import { StoreUnavailableError } from '../stores/errors.ts';
import type { MakeBuckets } from '../stores/sql/limits.ts';
import type { Authenticator } from './authenticator.ts';

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

/** Who has this key? Throws the problem where nobody has, and another one when an address has guessed too often. */
export type CheckKey = (key: string | undefined, address: string) => Promise<Caller>;

/**
 * Runs before any byte of a body is read, and for paths that do not exist as well: without a key nothing shows. The
 * returned function is for those whose key does not come in a header.
 */
export function requireKeys(
  app: FastifyInstance,
  authenticator: Authenticator,
  makeBuckets: MakeBuckets,
): CheckKey {
  const wrongKeys = makeBuckets('address', WRONG_KEYS_PER_MINUTE);
  const check: CheckKey = async (key, address) => {
    if (key === undefined || key === '') {
      throw new ProblemError(
        'missing_api_key',
        `Send your API key in the header ${API_KEY_HEADER}. \`undertone keys create\` makes one.`,
      );
    }
    const caller = await authenticator.authenticate(key);
    if (caller !== null) return caller;
    // Only after the look-up: a right key is never affected by the wrong ones of others behind the same address.
    const { allowed, retryAfterSeconds } = await wrongKeys.take(address);
    if (!allowed)
      throw retryLater('rate_limited', 'Too many wrong API keys from this address.', retryAfterSeconds);
    throw new ProblemError('invalid_api_key', 'This API key is unknown, expired or revoked.');
  };
  app.decorateRequest('caller', null);
  app.addHook('onRequest', async (request: FastifyRequest) => {
    if (!request.routeOptions.config.withoutKey) request.caller = await check(keyOf(request), request.ip);
  });
  return check;
}

/** For streams, which outlive the look-up of their key. Throws when it is valid no longer, not while nobody can tell. */
export type RecheckKey = () => Promise<void>;

export function rechecks(authenticator: Authenticator, key: string): RecheckKey {
  return async () => {
    const caller = await authenticator.authenticate(key).catch((error: unknown) => {
      if (error instanceof StoreUnavailableError) return undefined;
      throw error;
    });
    if (caller === null)
      throw new ProblemError('invalid_api_key', 'This API key was revoked, or has expired.');
  };
}

export function keyOf({ headers }: FastifyRequest): string | undefined {
  return (
    (headers[API_KEY_HEADER] as string | undefined) ??
    /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1] ??
    protocolKey(headers['sec-websocket-protocol'])
  );
}

/** Browsers cannot set headers on a WebSocket, only offer subprotocols. */
function protocolKey(offered: string | undefined): string | undefined {
  return offered
    ?.split(',')
    .map((protocol) => protocol.trim())
    .find((protocol) => protocol.startsWith(KEY_PROTOCOL_PREFIX))
    ?.slice(KEY_PROTOCOL_PREFIX.length);
}
