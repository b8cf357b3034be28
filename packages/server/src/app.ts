import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { REQUEST_ID_HEADER } from '@undertone/contract';
import fastify, { type FastifyInstance, LogController } from 'fastify';
import { clipRoutes } from './clips/routes.ts';
import { requireKeys } from './http/auth.ts';
import { drainUnreadBodies } from './http/body.ts';
import { answerClientError, answerErrors, sendProblem, watchMethods } from './http/errors.ts';
import { limitRates } from './http/rate-limit.ts';
import { logRequests, requestIdOf } from './http/request-log.ts';
import { secure } from './http/security.ts';
import { collectOpenApi, serveOpenApi } from './openapi/plugin.ts';
import { operationRoutes } from './operators/routes.ts';
import { servePage } from './page.ts';
import { recordingRoutes } from './recordings/routes.ts';
import type { Services } from './services.ts';
import { acceptWebSockets, isWebSocket, streamRoutes } from './streams/routes.ts';

/** The whole service as one tree of plugins. It knows no port, and neither opens nor closes what it is given. */
export async function buildApp(services: Services): Promise<FastifyInstance> {
  const { settings, metrics, logger, stopping, authenticator, bodyTimeouts, makeBuckets } = services;
  const app = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    genReqId: requestIdOf,
    requestIdHeader: false,
    trustProxy: settings.trustedProxies.length > 0 && [...settings.trustedProxies],
    routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true },
    // During shutdown, requests on open connections are still answered.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // `requestTimeout` is the outermost limit: the routes that read bodies have stricter ones.
    http: {
      headersTimeout: 10_000,
      connectionsCheckingInterval: 5_000,
      shouldUpgradeCallback: isWebSocket,
    },
    requestTimeout: bodyTimeouts.recording.totalMs,
    keepAliveTimeout: 65_000,
    bodyLimit: 4 * 1024 * 1024,
    frameworkErrors: sendProblem,
    clientErrorHandler: answerClientError,
  }).withTypeProvider<TypeBoxTypeProvider>();
  app.server.maxConnections = 2_048;
  // Node would refuse an unknown `Expect` header with 417; we ignore it.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));

  app.addHook('onListen', async () => metrics.resetEventLoopDelay());
  const refuseOtherMethods = watchMethods(app);
  answerErrors(app);
  logRequests(app, metrics);
  await acceptWebSockets(app, services.streams);
  drainUnreadBodies(app);
  app.addHook('onRequest', async (request, reply) => {
    reply.header(REQUEST_ID_HEADER, request.id);
  });
  app.addHook('onSend', async (_request, reply) => {
    // A keep-alive connection would delay shutdown.
    if (stopping.aborted) reply.header('connection', 'close');
  });
  await secure(app, settings);
  await collectOpenApi(app);
  if (settings.role === 'worker') {
    await app.register(operationRoutes, services);
    refuseOtherMethods();
    return app;
  }
  requireKeys(app, authenticator, makeBuckets);
  limitRates(app, makeBuckets);
  await app.register(clipRoutes, services);
  await app.register(recordingRoutes, services);
  await app.register(streamRoutes, services);
  await app.register(operationRoutes, services);
  await app.register(import('./compat/index.ts'), services);
  await serveOpenApi(app);
  await servePage(app, services);
  refuseOtherMethods();
  return app;
}
