import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { REQUEST_ID_HEADER } from '@undertone/contract';
import type { FastifyInstance } from 'fastify';
import type { Metrics } from '../operators/metrics.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Asked every few seconds by machines: logged at debug unless it fails. */
    probe?: boolean;
  }
}

/** What proxies write for a client that closed the connection before it was answered. */
const CLIENT_CLOSED_REQUEST = 499;
const SWITCHING_PROTOCOLS = 101;

/** One line and one count for each request. The route's pattern, not the address: a query may hold a secret. */
export function logRequests(app: FastifyInstance, metrics: Metrics): void {
  app.addHook('onRequest', (request, reply, next) => {
    const note = (status: number, message: string) => {
      const route = request.routeOptions.url ?? 'unmatched';
      const { method } = request;
      metrics.requests.inc({ method, route, status });
      // How long somebody talks is no latency.
      if (status !== SWITCHING_PROTOCOLS) {
        metrics.latency.observe({ method, route }, reply.elapsedTime / 1000);
      }
      const level = request.routeOptions.config.probe && status < 500 ? 'debug' : 'info';
      const line = { method, route, status, ms: Math.round(reply.elapsedTime), key: request.caller?.logId };
      request.log[level](line, message);
    };
    reply.raw.once('finish', () => note(reply.statusCode, 'answered'));
    reply.raw.once('close', () => {
      if (reply.raw.writableFinished) return;
      // A reply that was given out of hand is a WebSocket: whoever has it answers, and closes.
      if (request.ws && reply.sent) note(SWITCHING_PROTOCOLS, 'the stream is closed');
      else note(CLIENT_CLOSED_REQUEST, 'the client closed the connection');
    });
    next();
  });
}

/** A caller's own id is kept when it is harmless in a log line and a header; otherwise it gets a new one. */
export function requestIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers[REQUEST_ID_HEADER];
  return typeof given === 'string' && /^[\w.-]{1,128}$/.test(given) ? given : randomUUID();
}
