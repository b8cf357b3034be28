import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import {
  ASYNCH_LIMITS,
  DEFAULT_MODEL,
  type ModelId,
  type ModelInfo,
  type ModelList,
  PATHS,
  type RateLimitStatus,
} from '@undertone/contract';
import {
  HEALTH_OPERATION,
  METRICS_OPERATION,
  MODELS_OPERATION,
  RATE_LIMIT_HEALTH_OPERATION,
  RATE_LIMIT_STATUS_OPERATION,
  READY_OPERATION,
} from '../openapi/operations.ts';
import { retryLater } from '../problems.ts';
import type { Services } from '../services.ts';

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
  app.get(`${PATHS.rateLimit}/status`, RATE_LIMIT_STATUS_OPERATION, async ({ caller }, reply) =>
    rateLimitStatus(services, caller?.id ?? '', Number(reply.getHeader('ratelimit-remaining') ?? 0)),
  );

  app.get(`${PATHS.rateLimit}/health`, RATE_LIMIT_HEALTH_OPERATION, async () => ({
    status: 'healthy',
    timestamp: Date.now() / 1_000,
  }));

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

const BYTES_IN_MB = 1024 * 1024;

/** `remaining` as this very request was told in its headers. */
function rateLimitStatus(
  { settings, classifier, streams }: Services,
  owner: string,
  remaining: number,
): RateLimitStatus {
  const { rateLimit, streamLimit, queueLimit } = settings;
  return {
    policy_name: 'default',
    limits: {
      requests_per_minute: rateLimit || null,
      max_audio_size_mb: ASYNCH_LIMITS.maxFileBytes / BYTES_IN_MB,
      max_audio_duration_seconds: ASYNCH_LIMITS.maxSeconds,
      max_concurrent_requests: queueLimit + classifier.stats().threads,
      max_concurrent_streams: streamLimit || null,
    },
    current_usage: {
      requests_per_minute: rateLimit > 0 ? rateLimit - remaining : null,
      concurrent_streams: streams.count(owner),
    },
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
