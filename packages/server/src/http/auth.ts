import { API_KEY_HEADER, KEY_PROTOCOL_PREFIX } from '@undertone/contract';
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import { audit } from '../audit.ts';
import { ProblemError, retryLater } from '../problems.ts';
import type { Caller } from '../stores/contracts.ts';
import { StoreUnavailableError } from '../stores/errors.ts';
import type { MakeBuckets } from '../stores/sql/limits.ts';
import type { Tokens } from '../tokens/tokens.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The key's owner; null on routes that need no key. */
    caller: Caller | null;
  }
  interface FastifyInstance {
    checkKey: CheckKey;
  }
  interface FastifyContextConfig {
    /** The route needs no API key. */
    withoutKey?: boolean;
  }
}

const WRONG_KEYS_PER_MINUTE = 20;

/** Finds the caller of a key. Throws a problem if the key is invalid or the address sent too many wrong ones. */
type CheckKey = (key: string | undefined, address: string, log?: FastifyBaseLogger) => Promise<Caller>;

/**
 * Checks the key before any byte of the body is read, also on unknown paths, so that nothing is visible without a key.
 * `app.checkKey` is for keys that do not come in a header.
 */
export function requireKeys(app: FastifyInstance, tokens: Tokens, makeBuckets: MakeBuckets): void {
  const wrongKeys = makeBuckets('address');
  const check: CheckKey = async (key, address, log = app.log) => {
    if (key === undefined || key === '') {
      throw new ProblemError(
        'missing_api_key',
        `Send your API key in the header ${API_KEY_HEADER}. \`undertone keys create\` makes one.`,
      );
    }
    const caller = await tokens.authenticate(key);
    if (caller !== null) return caller;
    // After the lookup, so that a valid key is never affected by wrong ones from the same address.
    const { allowed, retryAfterSeconds } = await wrongKeys.take(address, WRONG_KEYS_PER_MINUTE);
    if (!allowed)
      throw retryLater(
        'rate_limited',
        'Too many wrong API keys from this address. Try again later.',
        retryAfterSeconds,
      );
    audit(log, 'key.refused', { key: /^ut_([0-9a-f]{12})_/.exec(key)?.[1] });
    throw new ProblemError('invalid_api_key', 'This API key is unknown, expired or revoked.');
  };
  app.decorate('checkKey', check);
  app.decorateRequest('caller', null);
  app.addHook('onRequest', async (request: FastifyRequest) => {
    if (!request.routeOptions.config.withoutKey) {
      request.caller = await check(keyOf(request), request.ip, request.log);
    }
  });
}

/** The caller of a route that needs a key. */
export function callerOf({ caller }: Pick<FastifyRequest, 'caller'>): Caller {
  if (caller === null) throw new Error('A route that needs a key was reached without one');
  return caller;
}

/** For streams, which outlive the first check. Throws when the key is no longer valid; not while the store is unavailable. */
export type RecheckKey = () => Promise<void>;

export function rechecks(tokens: Tokens, key: string): RecheckKey {
  return async () => {
    const caller = await tokens.recheck(key).catch((error: unknown) => {
      if (error instanceof StoreUnavailableError) return undefined;
      throw error;
    });
    if (caller === null)
      throw new ProblemError('invalid_api_key', 'This API key was revoked or has expired.');
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
