import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { PATHS } from '@undertone/contract';
import type { FastifyInstance, FastifyReply } from 'fastify';
import packageJson from '../package.json' with { type: 'json' };
import { ProblemError } from './problems.ts';
import type { Services } from './services.ts';

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.wav': 'audio/wav',
};

/** The answer at `/` for programs. */
const LINKS = {
  name: 'Undertone',
  version: packageJson.version,
  docs: PATHS.docs,
  openapi: PATHS.openapi,
  models: PATHS.models,
  health: PATHS.health,
};

const NOT_BUILT =
  '<!doctype html><html lang="en"><title>Undertone</title><p>This page has not been built. Run <code>make install</code> ' +
  'in the project folder and reload. The <a href="/docs">API</a> works without it.';

/** The web page at `/`, built by `packages/playground`. The page needs no key; its API calls do. */
export async function servePage(app: FastifyInstance, services: Pick<Services, 'settings' | 'blobs'>) {
  const policy = contentSecurityPolicy(services);
  const send = (reply: FastifyReply, type: string | undefined, content: Buffer | string) =>
    reply
      .type(type ?? 'application/octet-stream')
      .headers({ 'content-security-policy': policy, 'cache-control': 'no-cache' })
      .send(content);

  app.get('/', { config: { withoutKey: true }, schema: { hide: true } }, async (request, reply) => {
    reply.header('vary', 'accept');
    if (!request.headers.accept?.includes('text/html')) return LINKS;
    return send(reply, TYPES['.html'], await readPage('index.html').catch(() => NOT_BUILT));
  });

  app.get<{ Params: { '*': string } }>(
    '/page/*',
    { config: { withoutKey: true }, schema: { hide: true } },
    async (request, reply) => {
      const name = request.params['*'];
      // No dot but the one before the extension, so no path can leave the folder.
      if (!/^([\w-]+\/)*[\w-]+\.\w+$/.test(name)) throw notFound();
      const content = await readPage(name).catch(() => {
        throw notFound();
      });
      return send(reply, TYPES[extname(name)], content);
    },
  );
}

function readPage(name: string): Promise<Buffer> {
  return readFile(new URL(import.meta.resolve(`@undertone/playground/dist/${name}`)));
}

function notFound(): ProblemError {
  return new ProblemError('not_found', 'File not found. The page is at /.');
}

/** The page may connect to this server, its public URL, and the origin that uploads go to. */
function contentSecurityPolicy({ settings, blobs }: Pick<Services, 'settings' | 'blobs'>): string {
  const publicOrigin = settings.publicUrl && new URL(settings.publicUrl).origin;
  const origins = [publicOrigin, publicOrigin.replace(/^http/, 'ws'), blobs.uploadOrigin];
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' blob: data:",
    "media-src 'self' blob:",
    ["connect-src 'self'", ...new Set(origins.filter(Boolean))].join(' '),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}
