import cors from '@fastify/cors';
import {
  API_KEY_HEADER,
  IDEMPOTENCY_KEY_HEADER,
  REQUEST_ID_HEADER,
  SPEECH_SECONDS_HEADER,
} from '@undertone/contract';
import type { FastifyInstance } from 'fastify';
import type { Settings } from '../settings.ts';

/** Sent with every response; the pages replace the content security policy. */
const SECURITY_HEADERS = {
  'content-security-policy': "default-src 'none';frame-ancestors 'none';base-uri 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-dns-prefetch-control': 'off',
  'x-frame-options': 'DENY',
  'x-permitted-cross-domain-policies': 'none',
};

/** Adds security headers, and CORS if origins are configured. */
export async function secure(
  app: FastifyInstance,
  { corsOrigins, publicUrl }: Pick<Settings, 'corsOrigins' | 'publicUrl'>,
): Promise<void> {
  const shared = corsOrigins.length > 0;
  const headers = {
    ...SECURITY_HEADERS,
    'cross-origin-resource-policy': shared ? 'cross-origin' : 'same-origin',
    ...(publicUrl.startsWith('https:') && {
      // Without includeSubDomains: the operator's other hosts may not use https.
      'strict-transport-security': 'max-age=31536000',
    }),
  };
  app.addHook('onRequest', (_request, reply, next) => {
    reply.headers(headers);
    next();
  });
  if (!shared) return;
  await app.register(cors, {
    origin: corsOrigins.includes('*') ? '*' : [...corsOrigins],
    methods: ['GET', 'POST', 'PUT', 'DELETE'],
    allowedHeaders: [
      API_KEY_HEADER,
      'authorization',
      REQUEST_ID_HEADER,
      IDEMPOTENCY_KEY_HEADER,
      'content-type',
      'content-md5',
    ],
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
