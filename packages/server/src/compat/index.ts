import { Readable } from 'node:stream';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { ASYNCH_LIMITS, ASYNCH_PATHS, PATHS, type RateLimitStatus as RateLimits } from '@undertone/contract';
import { RateLimitStatus, StatusQuery, StatusResult } from '@undertone/contract/schemas';
import { addClipRoute } from '../clips/routes.ts';
import { callerOf } from '../http/auth.ts';
import type { ProblemError } from '../problems.ts';
import {
  addCompleteRoute,
  addInitiateRoute,
  NO_STORE,
  ownerOf,
  parseOptionalJson,
  REQUEST_PARAMS,
} from '../recordings/routes.ts';
import type { Services } from '../services.ts';
import type { Caller } from '../stores/contracts.ts';
import {
  CLASSIFY_CLIP_SHORT,
  COMPLETE_EMOTION,
  INITIATE_BY_GET,
  INITIATE_EMOTION,
  RATE_LIMIT_HEALTH,
  RATE_LIMIT_STATUS,
  STATUS,
} from './describe.ts';
import { serveSocketIo } from './socket-io.ts';
import { readStatus } from './status.ts';

/** Everything that exists only for clients of other vendors. `app.ts` registers it in one line. */
const compat: FastifyPluginAsyncTypebox<Services> = async (app, services) => {
  app.problemExtensions.push(durationNames);
  if (services.settings.socketIo) serveSocketIo(app, services);
  await app.register(async (scope) =>
    addClipRoute(scope, PATHS.discreteShort, CLASSIFY_CLIP_SHORT, services),
  );
  await app.register(secondGeneration, services);
};

export default compat;

const secondGeneration: FastifyPluginAsyncTypebox<Services> = async (app, services) => {
  app.addSchema(StatusResult);
  app.addSchema(RateLimitStatus);
  parseOptionalJson(app);
  const { initiate, complete } = ASYNCH_PATHS;
  addInitiateRoute(app, 'GET', PATHS.asynch + initiate, INITIATE_BY_GET, services);
  addInitiateRoute(app, 'POST', PATHS.asynchEmotion + initiate, INITIATE_EMOTION, services);
  addCompleteRoute(app, PATHS.asynchEmotion + complete, COMPLETE_EMOTION, services);

  app.get(
    `${PATHS.asynchEmotion}/status/:request_id`,
    { ...STATUS, schema: { ...STATUS.schema, params: REQUEST_PARAMS, querystring: StatusQuery } },
    async (request, reply) => {
      reply.headers(NO_STORE);
      const { comprehensive_output: comprehensive = false } = request.query;
      const { requests } = services;
      const id = request.params.request_id;
      const answer = await readStatus(requests, id, ownerOf(request), { comprehensive });
      if (!(Symbol.asyncIterator in answer)) return answer;
      return reply.type('application/json; charset=utf-8').send(Readable.from(answer));
    },
  );

  app.get(`${PATHS.rateLimit}/status`, RATE_LIMIT_STATUS, async (request, reply) =>
    readRateLimit(services, callerOf(request), Number(reply.getHeader('ratelimit-remaining') ?? 0)),
  );

  app.get(`${PATHS.rateLimit}/health`, RATE_LIMIT_HEALTH, async () => ({
    status: 'healthy',
    timestamp: Date.now() / 1_000,
  }));
};

/** Existing clients read a wrong length under these names. */
function durationNames({ code, message, figures }: ProblemError): object {
  if (code !== 'audio_too_short' && code !== 'audio_too_long') return {};
  const renamed = ['min', 'max', 'actual']
    .filter((bound) => `${bound}_seconds` in figures)
    .map((bound) => [`${bound}_duration_seconds`, figures[`${bound}_seconds`]]);
  return { error: message, error_code: code.toUpperCase(), ...Object.fromEntries(renamed) };
}

const BYTES_IN_MB = 1024 * 1024;

/** `remaining`: the value that this request got in its own `ratelimit-remaining` header. */
function readRateLimit(
  { settings, classifier, streams }: Services,
  { id, limits }: Caller,
  remaining: number,
): RateLimits {
  const { rate, streams: streamLimit } = limits;
  return {
    policy_name: 'default',
    limits: {
      requests_per_minute: rate || null,
      max_audio_size_mb: ASYNCH_LIMITS.maxFileBytes / BYTES_IN_MB,
      max_audio_duration_seconds: ASYNCH_LIMITS.maxSeconds,
      max_concurrent_requests: settings.queueLimit + classifier.stats().threads,
      max_concurrent_streams: streamLimit || null,
    },
    current_usage: {
      requests_per_minute: rate > 0 ? rate - remaining : null,
      concurrent_streams: streams.count(id),
    },
  };
}
