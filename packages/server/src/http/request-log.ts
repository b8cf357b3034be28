import type { FastifyInstance } from 'fastify';
import type { Metrics } from '../operations/metrics.ts';

/** One line and one count for each answer. The route's pattern, not the address: a query may hold a secret. */
export function logRequests(app: FastifyInstance, metrics: Metrics): void {
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'unmatched';
    const { method } = request;
    const { statusCode: status, elapsedTime } = reply;
    metrics.requests.inc({ method, route, status });
    metrics.latency.observe({ method, route }, elapsedTime / 1000);
    const line = {
      method,
      route,
      status,
      ms: Math.round(elapsedTime),
      key: request.caller?.id,
    };
    const quiet = request.routeOptions.config.open && status < 500;
    request.log[quiet ? 'debug' : 'info'](line, 'answered');
  });
}
