import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type ErrorCode, REQUEST_ID_HEADER } from '@undertone/contract';
import type { FastifyInstance } from 'fastify';
import type { Metrics } from '../operators/metrics.ts';
import type { Span, Telemetry } from '../telemetry/telemetry.ts';
import { traceIdOf } from '../trace.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The asynch request that the call is about. */
    recording: string | null;
    /** Undefined for probes. */
    span: Span | undefined;
    /** Of a refused or failed call. */
    problemCode: ErrorCode | null;
  }
  interface FastifyContextConfig {
    /** Polled by machines: logged at debug level unless it fails. */
    probe?: boolean;
  }
}

/** The status that proxies log for a client that disconnected before its response. */
const CLIENT_CLOSED_REQUEST = 499;
const SWITCHING_PROTOCOLS = 101;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Logs and counts each request, by the route's pattern and not by its URL: a query may contain a secret. */
export function logRequests(app: FastifyInstance, metrics: Metrics, telemetry: Telemetry): void {
  app.decorateRequest('span', undefined);
  app.decorateRequest('recording', null);
  app.decorateRequest('problemCode', null);
  app.addHook('preHandler', async (request) => {
    request.recording =
      recordingIn(request.params) ?? recordingIn(request.query) ?? recordingIn(request.body);
  });
  app.addHook('onRequest', (request, reply, next) => {
    let noted = false;
    const note = (status: number, message: string) => {
      if (noted) return;
      noted = true;
      const route = request.routeOptions.url ?? 'unmatched';
      const { method } = request;
      metrics.requests.inc({ method, route, status });
      if (request.problemCode !== null) metrics.problems.inc({ code: request.problemCode });
      // Exclude stream duration.
      if (status !== SWITCHING_PROTOCOLS) {
        metrics.latency.observe({ method, route }, reply.elapsedTime / 1000);
      }
      const level = request.routeOptions.config.probe && status < 500 ? 'debug' : 'info';
      const { recording, caller, headers } = request;
      const line = {
        method,
        route,
        status,
        ms: Math.round(reply.elapsedTime),
        key: caller?.logId,
        code: request.problemCode ?? undefined,
        recording: recording ?? undefined,
        trace_id: traceIdOf(request.span?.traceparent ?? headers['traceparent']),
      };
      request.log[level](line, message);
      request.span?.end({
        attributes: { 'http.response.status_code': status, 'undertone.recording': line.recording },
        failed: status >= 500,
      });
    };
    reply.raw.once('finish', () => note(reply.statusCode, 'answered'));
    reply.raw.once('close', () => {
      if (reply.raw.writableFinished) return;
      // A hijacked reply is a WebSocket.
      if (request.ws && reply.sent) note(SWITCHING_PROTOCOLS, 'the stream is closed');
      else note(CLIENT_CLOSED_REQUEST, 'the client closed the connection');
    });
    if (request.routeOptions.config.probe) return next();
    const { method, headers } = request;
    const route = request.routeOptions.url ?? 'unmatched';
    request.span = telemetry.start(`${method} ${route}`, {
      kind: 'server',
      parent: headers['traceparent'] as string | undefined,
      attributes: { 'http.request.method': method, 'http.route': route, 'undertone.request_id': request.id },
    });
    request.span.run(next);
  });
}

/** The id of an asynch request, and nothing else that a caller sent. */
function recordingIn(fields: unknown): string | null {
  const { request_id } = (fields ?? {}) as { request_id?: unknown };
  return typeof request_id === 'string' && UUID.test(request_id) ? request_id.toLowerCase() : null;
}

/** Keeps a caller's own id if it is safe in a log line and a header. */
export function requestIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers[REQUEST_ID_HEADER];
  return typeof given === 'string' && /^[\w.-]{1,128}$/.test(given) ? given : randomUUID();
}
