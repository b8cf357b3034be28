import type { TokenScope } from '@undertone/contract';
import type { FastifyInstance } from 'fastify';
import { ProblemError } from '../problems.ts';
import type { Caller } from '../stores/contracts.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The narrowest scope of tokens that may call the route: `all` by default. `none`: only keys may call it. */
    tokenScope?: NeededScope;
  }
}

type NeededScope = TokenScope | 'none';

/** Runs after the key is checked and before the body is read. */
export function requireScopes(app: FastifyInstance): void {
  app.addHook('onRequest', async ({ caller, is404, routeOptions }) => {
    if (caller !== null && !is404) requireScope(caller, routeOptions.config.tokenScope ?? 'all');
  });
}

export function requireScope({ scope }: Caller, needed: NeededScope): void {
  if (scope === undefined || scope === needed) return;
  if (needed === 'none')
    throw new ProblemError('forbidden', 'A token cannot do this. Use the API key, on your server.');
  if (scope === 'all') return;
  throw new ProblemError(
    'forbidden',
    `This token has the scope "${scope}", which does not cover this path. Get one with the scope "${needed}".`,
  );
}
