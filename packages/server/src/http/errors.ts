import type { Socket } from 'node:net';
import {
  API_KEY_HEADER,
  ERRORS,
  type ErrorCode,
  PROBLEM_CONTENT_TYPE,
  REQUEST_ID_HEADER,
} from '@undertone/contract';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { asProblem, ProblemError } from '../problems.ts';
import { requestIdOf } from './request-log.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** Each may add members to the body of a problem. */
    problemExtensions: ((problem: ProblemError) => object)[];
  }
}

export function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  // The client disconnected, which is probably the cause. The access log has a line about it.
  if (reply.raw.destroyed) return;
  const problem = asProblem(error);
  // Safe to log: errors contain our own text and a stack, never what a caller sent.
  if (problem.status >= 500 && problem.cause !== undefined)
    request.log.error({ err: problem.cause }, 'failed');
  if (problem.status === 401) reply.header('www-authenticate', `ApiKey header="${API_KEY_HEADER}"`);
  request.problemCode = problem.code;
  const extensions = request.server.problemExtensions.map((extend) => extend(problem));
  reply
    .code(problem.status)
    .headers({ ...problem.headers, [REQUEST_ID_HEADER]: request.id, 'cache-control': 'no-store' })
    .type(PROBLEM_CONTENT_TYPE)
    // As bytes: the route's response schema must not drop members, and no charset is added.
    .send(Buffer.from(JSON.stringify(Object.assign(problem.toBody(request.id), ...extensions))));
}

export function answerErrors(app: FastifyInstance): void {
  app.decorate('problemExtensions', []);
  app.setErrorHandler(sendProblem);
  app.setNotFoundHandler((request, reply) => {
    sendProblem(new ProblemError('not_found', 'Not found. See /docs for all paths.'), request, reply);
  });
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/** Collects the methods of every route from now on. The returned function adds a 405 for all others. */
export function watchMethods(app: FastifyInstance): () => void {
  const routes = new Map<string, { methods: Set<string>; withoutKey: boolean }>();
  app.addHook('onRoute', ({ url, method, config }) => {
    const route = routes.get(url) ?? { methods: new Set<string>(), withoutKey: config?.withoutKey ?? false };
    for (const name of [method].flat()) route.methods.add(name);
    routes.set(url, route);
  });
  return () => {
    for (const [url, { methods, withoutKey }] of [...routes]) {
      if (url.includes('*')) continue;
      const allow = [...methods].join(', ');
      app.route({
        url,
        method: METHODS.filter((name) => !methods.has(name)),
        config: { withoutKey },
        schema: { hide: true },
        // In this hook, before the body is read.
        onRequest: async () => {
          throw new ProblemError('method_not_allowed', `Use ${allow} here.`, { headers: { allow } });
        },
        handler: () => undefined,
      });
    }
  };
}

/** For bytes that Node could not parse as HTTP: there is only a socket to write to. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const problem = clientProblem(error.code);
  const id = requestIdOf({ headers: {} });
  const body = JSON.stringify(problem.toBody(id));
  socket.end(
    [
      `HTTP/1.1 ${problem.status} ${ERRORS[problem.code].title}`,
      `content-type: ${PROBLEM_CONTENT_TYPE}`,
      `content-length: ${Buffer.byteLength(body)}`,
      `${REQUEST_ID_HEADER}: ${id}`,
      'connection: close',
      '',
      body,
    ].join('\r\n'),
  );
}

function clientProblem(code: string | undefined): ProblemError {
  const known: Record<string, [ErrorCode, string]> = {
    HPE_HEADER_OVERFLOW: ['headers_too_large', 'All headers together may have at most 16 kB.'],
    ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'The request did not arrive in time. Send it again.'],
  };
  return new ProblemError(...(known[code ?? ''] ?? ['bad_request', 'This is not a valid HTTP request.']));
}
