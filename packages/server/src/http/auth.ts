import { API_KEY_HEADER } from '@undertone/contract';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { EnvironmentKey } from '../keys/environment-key.ts';
import type { Caller, KeyStore } from '../keys/key-store.ts';
import { ProblemError } from '../problems.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Whose key this request carries; null on the few routes that need none. */
    caller: Caller | null;
  }
  interface FastifyContextConfig {
    /** The route needs no API key. */
    open?: boolean;
  }
}

export type Authenticate = (key: string | undefined) => Promise<Caller>;

/** Checks a key wherever it came from: a header here, a subprotocol or a first message on a socket. */
export function createAuthenticate(keys: KeyStore, environmentKey: string): Authenticate {
  const environment = environmentKey === '' ? null : new EnvironmentKey(environmentKey);
  return async (key) => {
    if (key === undefined || key === '') {
      throw new ProblemError(
        'missing_api_key',
        `Send your API key in the header ${API_KEY_HEADER}; \`undertone keys create\` makes one.`,
      );
    }
    const caller = environment?.verify(key) ?? (await keys.verify(key));
    if (caller === null) {
      throw new ProblemError('invalid_api_key', 'This API key is unknown or was revoked.');
    }
    return caller;
  };
}

/** Runs before any byte of a body is read, and for paths that do not exist as well: without a key nothing shows. */
export function requireKeys(app: FastifyInstance, authenticate: Authenticate): void {
  app.decorateRequest('caller', null);
  app.addHook('onRequest', async (request: FastifyRequest) => {
    if (request.routeOptions.config.open) return;
    const key = request.headers[API_KEY_HEADER];
    request.caller = await authenticate(Array.isArray(key) ? key[0] : key);
  });
}
