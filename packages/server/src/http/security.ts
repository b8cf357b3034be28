import cors from '@fastify/cors';
import helmet from '@fastify/helmet';
import { API_KEY_HEADER, REQUEST_ID_HEADER, SPEECH_SECONDS_HEADER } from '@undertone/contract';
import type { FastifyInstance } from 'fastify';
import type { Settings } from '../settings.ts';

/** Headers that keep browsers from doing anything clever with our answers. Browsers may not call us unless told. */
export async function secure(
  app: FastifyInstance,
  { corsOrigins, publicUrl }: Pick<Settings, 'corsOrigins' | 'publicUrl'>,
): Promise<void> {
  const shared = corsOrigins.length > 0;
  await app.register(helmet, {
    contentSecurityPolicy: {
      useDefaults: false,
      directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"], baseUri: ["'none'"] },
    },
    crossOriginResourcePolicy: { policy: shared ? 'cross-origin' : 'same-origin' },
    xFrameOptions: { action: 'deny' },
    // Promising https for a server that is reached without it would be wrong.
    hsts: publicUrl.startsWith('https:'),
  });
  if (!shared) return;
  await app.register(cors, {
    origin: corsOrigins.includes('*') ? '*' : [...corsOrigins],
    methods: ['GET', 'POST', 'PUT', 'DELETE'],
    allowedHeaders: [API_KEY_HEADER, REQUEST_ID_HEADER, 'content-type', 'content-md5'],
    exposedHeaders: [
      REQUEST_ID_HEADER,
      SPEECH_SECONDS_HEADER,
      'server-timing',
      'etag',
      'retry-after',
      'ratelimit-limit',
      'ratelimit-remaining',
      'ratelimit-reset',
    ],
    maxAge: 3600,
  });
}
