import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { PATHS, TOKEN_SECONDS } from '@undertone/contract';
import { TokenBody } from '@undertone/contract/schemas';
import { NO_STORE, parseOptionalJson } from '../recordings/routes.ts';
import type { Services } from '../services.ts';
import { MAKE_TOKEN } from './describe.ts';

/** Tokens for browsers, which should not see an API key. */
export const tokenRoutes: FastifyPluginAsyncTypebox<Services> = async (app, { tokens }) => {
  parseOptionalJson(app);

  app.post(
    PATHS.tokens,
    {
      ...MAKE_TOKEN,
      schema: { ...MAKE_TOKEN.schema, body: TokenBody },
      preValidation: async (request) => {
        request.body ??= {};
      },
    },
    async (request, reply) => {
      const { expires_in: seconds = TOKEN_SECONDS.default, scope = 'all' } = request.body;
      if (request.caller === null) throw new Error('A route that needs a key was reached without one');
      return reply.headers(NO_STORE).send(tokens.issue(request.caller, { scope, seconds }));
    },
  );
};
