import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { Classifier } from '@undertone/classifier';
import { REQUEST_ID_HEADER } from '@undertone/contract';
import fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import { asynchRoutes } from './asynch/routes.ts';
import type { AsynchService } from './asynch/service.ts';
import { discreteRoutes } from './discrete/routes.ts';
import { createAuthenticate, requireKeys } from './http/auth.ts';
import { answerClientError, answerErrors, sendProblem, watchMethods } from './http/errors.ts';
import { createHttpServer } from './http/http-server.ts';
import { lingerAfterEarlyAnswers } from './http/linger.ts';
import { limitRates } from './http/rate-limit.ts';
import type { Patience } from './http/receive.ts';
import { requestIdOf } from './http/request-id.ts';
import { logRequests } from './http/request-log.ts';
import { secure } from './http/security.ts';
import type { KeyStore } from './keys/key-store.ts';
import { collectOpenApi, serveOpenApi } from './openapi/plugin.ts';
import { Metrics } from './operations/metrics.ts';
import { operationRoutes } from './operations/routes.ts';
import type { Services } from './services.ts';
import type { Settings } from './settings.ts';

export interface AppOptions {
  settings: Settings;
  classifier: Classifier;
  keys: KeyStore;
  asynch: AsynchService;
  logger: FastifyBaseLogger;
  metrics?: Metrics;
  ffmpegPath?: string | null;
  stopping?: AbortSignal;
  clipPatience?: Patience;
}

/** A clip is small: whoever needs longer than this to send one is not going to finish. */
const CLIP_PATIENCE: Patience = { idleMs: 10_000, totalMs: 30_000 };

/** The whole service as one tree of plugins. It knows no port, opens nothing and closes nothing it was given. */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const { settings, classifier, keys, asynch, logger } = options;
  const services: Services = {
    settings,
    classifier,
    keys,
    asynch,
    metrics: options.metrics ?? new Metrics(),
    ffmpegPath: options.ffmpegPath ?? null,
    clipPatience: options.clipPatience ?? CLIP_PATIENCE,
    stopping: options.stopping ?? new AbortController().signal,
  };
  const app = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    genReqId: requestIdOf,
    requestIdHeader: false,
    // Requests on connections that are already open are answered while we stop, not turned away.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    serverFactory: createHttpServer,
    bodyLimit: 4 * 1024 * 1024,
    frameworkErrors: sendProblem,
    clientErrorHandler: answerClientError,
  }).withTypeProvider<TypeBoxTypeProvider>();

  app.addHook('onClose', async () => services.metrics.close());
  app.addHook('onListen', async () => services.metrics.forgetTheStart());
  services.metrics.watchClassifier(classifier);

  const refuseOtherMethods = watchMethods(app);
  answerErrors(app);
  logRequests(app, services.metrics);
  lingerAfterEarlyAnswers(app);
  app.addHook('onRequest', async (request, reply) => {
    reply.header(REQUEST_ID_HEADER, request.id);
  });
  app.addHook('onSend', async (_request, reply) => {
    // A connection that is kept alive would keep a stopping server alive as well.
    if (services.stopping.aborted) reply.header('connection', 'close');
  });
  await secure(app, settings);
  requireKeys(app, createAuthenticate(keys, settings.apiKey));
  limitRates(app, settings.rateLimit);

  await collectOpenApi(app);
  await app.register(discreteRoutes, services);
  await app.register(asynchRoutes, services);
  await app.register(operationRoutes, services);
  await serveOpenApi(app);
  refuseOtherMethods();
  return app;
}
