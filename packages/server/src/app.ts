import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { PATHS, REQUEST_ID_HEADER } from '@undertone/contract';
import { Problem } from '@undertone/contract/schemas';
import fastify, { type FastifyInstance, LogController } from 'fastify';
import { clipRoutes } from './clips/routes.ts';
import { requireKeys } from './http/auth.ts';
import { drainUnreadBodies } from './http/body.ts';
import { Connections, guardConnections, markCallers } from './http/connections.ts';
import { answerClientError, answerErrors, sendProblem, watchMethods } from './http/errors.ts';
import { limitRates } from './http/rate-limit.ts';
import { logRequests, requestIdOf } from './http/request-log.ts';
import { secure } from './http/security.ts';
import { buildSerializer } from './http/serializers.ts';
import { collectOpenApi, serveOpenApi } from './openapi/plugin.ts';
import { HEALTH_OPERATION } from './operators/describe.ts';
import { operationRoutes, operatorRoutes } from './operators/routes.ts';
import { servePage } from './page.ts';
import { recordingRoutes } from './recordings/routes.ts';
import type { Services } from './services.ts';
import { acceptWebSockets, isWebSocket, refuseOtherUpgrades, streamRoutes } from './streams/routes.ts';
import { tokenRoutes } from './tokens/routes.ts';
import { requireScopes } from './tokens/scope.ts';

/** The whole service as one tree of plugins. It knows no port, and neither opens nor closes what it is given. */
export async function buildApp(services: Services): Promise<FastifyInstance> {
  const { settings, metrics, logger, stopping, tokens, bodyTimeouts, makeBuckets } = services;
  const { trustedProxies } = settings;
  const app = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    genReqId: requestIdOf,
    requestIdHeader: false,
    trustProxy: trustedProxies.length > 0 && [...trustedProxies],
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
    schemaController: { compilersFactory: { buildSerializer } },
    frameworkErrors: sendProblem,
    clientErrorHandler: answerClientError,
  }).withTypeProvider<TypeBoxTypeProvider>();
  // Node would refuse an unknown `Expect` header with 417; we ignore it.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));

  app.addHook('onListen', async () => metrics.resetEventLoopDelay());
  const refuseOtherMethods = watchMethods(app);
  answerErrors(app);
  logRequests(app, metrics, services.telemetry);
  guardConnections(
    app,
    new Connections({ limits: services.connectionLimits, trustedProxies, metrics, logger }),
  );
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
    refuseOtherUpgrades(app);
    await app.register(operationRoutes, services);
    refuseOtherMethods();
    return app;
  }
  requireKeys(app, tokens, makeBuckets);
  markCallers(app);
  // After the keys: without one, a path that exists is refused like any other.
  refuseOtherUpgrades(app);
  requireScopes(app);
  limitRates(app, makeBuckets);
  await app.register(clipRoutes, services);
  await app.register(recordingRoutes, services);
  await app.register(streamRoutes, services);
  await app.register(tokenRoutes, services);
  await app.register(operationRoutes, services);
  await app.register(import('./compat/index.ts'), services);
  await serveOpenApi(app);
  await servePage(app, services);
  refuseOtherMethods();
  return app;
}

/** Health, readiness and metrics for a port of their own. */
export async function buildOperationsApp(services: Services): Promise<FastifyInstance> {
  const app = fastify({
    loggerInstance: services.logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: requestIdOf,
    frameworkErrors: sendProblem,
  });
  app.addSchema(Problem);
  answerErrors(app);
  await secure(app, services.settings);
  app.get(PATHS.health, HEALTH_OPERATION, async () => ({ status: 'ok' }));
  await app.register(operatorRoutes, services);
  return app;
}
