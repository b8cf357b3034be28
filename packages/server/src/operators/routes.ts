import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { DEFAULT_MODEL, type ModelId, type ModelInfo, type ModelList, PATHS } from '@undertone/contract';
import type { Services } from '../services.ts';
import { HEALTH_OPERATION, METRICS_OPERATION, MODELS_OPERATION, READY_OPERATION } from './describe.ts';
import { whyNotReady } from './readiness.ts';
import type { StoreStates } from './store-health.ts';

/** Health, readiness, metrics and the list of models. */
export const operationRoutes: FastifyPluginAsyncTypebox<Services> = async (app, services) => {
  app.get(PATHS.health, HEALTH_OPERATION, async () => ({ status: 'ok' }));
  if (services.settings.operationsPort === 0) await app.register(operatorRoutes, services);

  // Workers serve no clients.
  if (services.settings.role === 'worker') return;
  const models = listModels(services);
  app.get(PATHS.models, MODELS_OPERATION, async () => models);
};

/** What only operators may see: on a port of its own if there is one. */
export const operatorRoutes: FastifyPluginAsyncTypebox<Services> = async (app, services) => {
  const { metrics, storeHealth } = services;
  app.get(PATHS.ready, READY_OPERATION, async () => {
    const problem = await whyNotReady(services);
    if (problem !== null) throw problem;
    return { status: 'ready', stores: describeStores(await storeHealth.states()) };
  });

  app.get(PATHS.metrics, METRICS_OPERATION, async (request, reply) => {
    // Other spellings of the path would pass a proxy that blocks this one.
    if (request.raw.url?.split('?', 1)[0] !== PATHS.metrics) return reply.callNotFound();
    reply.type(metrics.registry.contentType);
    return metrics.registry.metrics();
  });
};

function describeStores({ database, recordings }: StoreStates) {
  const describe = (reason: string | null) => (reason === null ? { up: true } : { up: false, reason });
  return { database: describe(database), recordings: describe(recordings) };
}

function listModels({ classifier }: Services): ModelList {
  const { catalog, weights, weightsName } = classifier;
  return {
    version: catalog.version,
    weights: {
      id: weightsName,
      licence: weights.licence,
      commercial_use: weights.commercial_use,
      summary: weights.summary,
    },
    models: catalog.models.map(({ id, emotions }) => ({
      id: id as ModelId,
      default: id === DEFAULT_MODEL,
      emotions: emotions as ModelInfo['emotions'],
      figures: weights.figures[id] ?? null,
    })),
  };
}
