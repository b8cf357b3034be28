import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { DEFAULT_MODEL, type ModelId, type ModelInfo, type ModelList, PATHS } from '@undertone/contract';
import { retryLater } from '../problems.ts';
import type { Services } from '../services.ts';
import { HEALTH_OPERATION, METRICS_OPERATION, MODELS_OPERATION, READY_OPERATION } from './describe.ts';

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
  const { metrics } = services;
  const checkStores = atMostEvery(STORE_CHECK_MS, async () => {
    await services.requests.checkWritable();
    await services.blobs.checkWritable();
  });
  app.get(PATHS.ready, READY_OPERATION, async () => {
    requireRunning(services);
    await checkStores();
    return { status: 'ready' };
  });

  app.get(PATHS.metrics, METRICS_OPERATION, async (request, reply) => {
    // Other spellings of the path would pass a proxy that blocks this one.
    if (request.raw.url?.split('?', 1)[0] !== PATHS.metrics) return reply.callNotFound();
    reply.type(metrics.registry.contentType);
    return metrics.registry.metrics();
  });
};

function requireRunning({ classifier, stopping }: Services): void {
  if (stopping.aborted) throw retryLater('overloaded', 'This server is stopping.', 1);
  if (classifier.stats().alive === 0) throw retryLater('overloaded', 'No inference thread is running.', 1);
}

/** The check writes to the stores, and anybody may ask. */
const STORE_CHECK_MS = 1_000;

/** All callers share one run and its outcome. An unavailable store rejects with its reason, the detail of the 503. */
function atMostEvery(everyMs: number, check: () => Promise<void>): () => Promise<void> {
  let latest: { at: number; outcome: Promise<void> } | undefined;
  return () => {
    const now = performance.now();
    if (latest === undefined || now - latest.at >= everyMs) latest = { at: now, outcome: check() };
    return latest.outcome;
  };
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
