import swagger from '@fastify/swagger';
import { API_KEY_HEADER, PATHS } from '@undertone/contract';
import {
  AsynchResult,
  CompleteBody,
  CompleteResult,
  DiscretePayload,
  DiscreteResult,
  InitiateResult,
  ModelList,
  PendingResult,
  Problem,
  RequestList,
  TokenBody,
  TokenResult,
  UploadStatus,
  WebhookEvent,
  WebhookSecret,
} from '@undertone/contract/schemas';
import type { FastifyInstance } from 'fastify';
import packageJson from '../../package.json' with { type: 'json' };
import { WEBHOOKS } from '../webhooks/describe.ts';
import { renderDocs } from './docs-page.ts';
import { nameEnums } from './named-enums.ts';

const VERSION = packageJson.version;

const DESCRIPTION = `Undertone recognises the emotion in a voice from its tone.

Every request except those under Operations needs an API key in the header \`${API_KEY_HEADER}\`, or as \`Authorization: Bearer\`. Every error is \`application/problem+json\` (RFC 9457) with a \`code\` to branch on and a \`detail\` that says what to do next.`;

/** Schemas that operations refer to. */
const SHARED = [
  Problem,
  DiscreteResult,
  DiscretePayload,
  ModelList,
  InitiateResult,
  CompleteBody,
  CompleteResult,
  PendingResult,
  AsynchResult,
  UploadStatus,
  RequestList,
  WebhookSecret,
  WebhookEvent,
  TokenBody,
  TokenResult,
];

/** Collects the OpenAPI text of every route registered after it. */
export async function collectOpenApi(app: FastifyInstance): Promise<void> {
  for (const schema of SHARED) app.addSchema(schema);
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        // Generators name their package after it: `undertone` and `undertone-client` are packages of ours.
        title: 'Undertone API',
        version: VERSION,
        description: DESCRIPTION,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/' }],
      tags: [
        { name: 'Discrete', description: 'Short recordings, classified immediately' },
        {
          name: 'Asynch',
          description: 'Long recordings, in one call or in parts; the result is a time line',
        },
        { name: 'Streaming', description: 'Live audio over WebSocket, with a prediction every few seconds' },
        { name: 'Tokens', description: 'Short-lived credentials for browsers' },
        {
          name: 'Existing clients',
          description: "The same operations under the paths of other vendors' clients",
        },
        { name: 'Operations', description: 'For operators of the server' },
      ],
      components: {
        securitySchemes: {
          apiKey: { type: 'apiKey', in: 'header', name: API_KEY_HEADER, description: 'A key or a token.' },
          bearer: { type: 'http', scheme: 'bearer', description: 'A key or a token.' },
        },
      },
      security: [{ apiKey: [] }, { bearer: [] }],
    },
    refResolver: { buildLocalReference: ({ $id }) => String($id) },
    // HEAD routes of health checks need no entry of their own.
    exposeHeadRoutes: false,
    transformObject: (made) =>
      nameEnums({ ...('openapiObject' in made && made.openapiObject), webhooks: WEBHOOKS }),
    transform: ({ schema, url, route }) => {
      const body = route.config?.documentedBody;
      return { schema: body ? { ...schema, body } : schema, url };
    },
  });
}

/** The OpenAPI document as JSON and as a page. */
export async function serveOpenApi(app: FastifyInstance): Promise<void> {
  let page: ReturnType<typeof renderDocs> | undefined;
  app.get(PATHS.openapi, { config: { withoutKey: true }, schema: { hide: true } }, async () => app.swagger());
  app.get(PATHS.docs, { config: { withoutKey: true }, schema: { hide: true } }, async (_request, reply) => {
    page ??= renderDocs(app.swagger());
    return reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', page.contentSecurityPolicy)
      .send(page.html);
  });
}
