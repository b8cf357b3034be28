import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { DEFAULT_MODEL, type ModelId, type ModelInfo, type ModelList, PATHS } from '@undertone/contract';
import {
  HEALTH_OPERATION,
  METRICS_OPERATION,
  MODELS_OPERATION,
  READY_OPERATION,
} from '../openapi/operations.ts';
import { ProblemError, retryLater } from '../problems.ts';
import type { Services } from '../services.ts';

/** What operators and their machines ask: is it alive, is it ready, what is it doing, what does it offer. */
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

  const models = listModels(services);
  app.get(PATHS.models, MODELS_OPERATION, async () => models);
};

async function checkReady({ classifier, keys, asynch, stopping }: Services): Promise<void> {
  if (stopping.aborted) throw retryLater('overloaded', 'This server is stopping.', 1);
  if (classifier.stats().workers === 0) throw retryLater('overloaded', 'No inference thread is alive.', 1);
  try {
    await keys.checkWritable();
    await asynch.stores.blobs.checkWritable();
  } catch (cause) {
    throw new ProblemError('overloaded', 'The data folder cannot be written to.', {
      headers: { 'retry-after': '5' },
      cause,
    });
  }
}

function listModels({ classifier, settings }: Services): ModelList {
  const { catalog, weights } = classifier;
  return {
    version: catalog.version,
    weights: {
      id: settings.weights,
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
