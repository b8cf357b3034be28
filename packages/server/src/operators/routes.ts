import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { DEFAULT_MODEL, type ModelId, type ModelInfo, type ModelList, PATHS } from '@undertone/contract';
import { retryLater } from '../problems.ts';
import type { Services } from '../services.ts';
import { HEALTH_OPERATION, METRICS_OPERATION, MODELS_OPERATION, READY_OPERATION } from './describe.ts';

/** Health, readiness, metrics and the list of models. */
export const operationRoutes: FastifyPluginAsyncTypebox<Services> = async (app, services) => {
  const { metrics } = services;

  app.get(PATHS.health, HEALTH_OPERATION, async () => ({ status: 'ok' }));

  app.get(PATHS.ready, READY_OPERATION, async () => {
    await checkReady(services);
    return { status: 'ready' };
  });

  app.get(PATHS.metrics, METRICS_OPERATION, async (_request, reply) => {
    reply.type(metrics.registry.contentType);
    return metrics.registry.metrics();
  });

  // Workers serve no clients.
  if (services.settings.role === 'worker') return;
  const models = listModels(services);
  app.get(PATHS.models, MODELS_OPERATION, async () => models);
};

/** An unavailable store rejects with its reason, which becomes the detail of the 503. */
async function checkReady({ classifier, requests, blobs, stopping }: Services): Promise<void> {
  if (stopping.aborted) throw retryLater('overloaded', 'This server is stopping.', 1);
  if (classifier.stats().alive === 0) throw retryLater('overloaded', 'No inference thread is running.', 1);
  await requests.checkWritable();
  await blobs.checkWritable();
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
