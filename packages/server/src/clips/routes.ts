import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import {
  DEFAULT_MODEL,
  PATHS,
  type DiscreteQuery as Query,
  SPEECH_SECONDS_HEADER,
} from '@undertone/contract';
import { DiscreteQuery } from '@undertone/contract/schemas';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { leaveBodiesUnread } from '../http/body.ts';
import type { Operation } from '../openapi/operation.ts';
import { requireModel, resultOf } from '../prediction.ts';
import { ProblemError } from '../problems.ts';
import type { Services, TypedApp } from '../services.ts';
import type { Reservation } from './admission.ts';
import { CLASSIFY_CLIP } from './describe.ts';
import { type ClipBody, clipBody, receiveClip } from './receive.ts';

/** Short recordings, classified while the client waits. */
export const clipRoutes: FastifyPluginAsyncTypebox<Services> = async (app, services) => {
  services.metrics.watchAdmission(() => services.admission.inFlight);
  addClipRoute(app, PATHS.discrete, CLASSIFY_CLIP, services);
};

/** The body is read only after the request is admitted. */
export function addClipRoute(app: TypedApp, url: string, operation: Operation, services: Services): void {
  leaveBodiesUnread(app);
  app.post(
    url,
    { ...operation, schema: { ...operation.schema, querystring: DiscreteQuery } },
    async (request, reply) => {
      requireModel(services.classifier, request.query.model);
      if (request.query.channels !== undefined) {
        throw new ProblemError(
          'bad_request',
          'Short recordings are always mixed down to one channel. The asynch interface takes channels=separate.',
        );
      }
      const { caller } = request;
      if (caller !== null) await services.audioHours.require(caller);
      const body = clipBody(request.raw);
      return services.admission.run(caller?.owner ?? '', body.announced, (reservation) =>
        classify(request as FastifyRequest, reply, body, reservation, services),
      );
    },
  );
}

async function classify(
  request: FastifyRequest,
  reply: FastifyReply,
  body: ClipBody,
  reservation: Reservation,
  { classifier, metrics, audioHours, bodyTimeouts }: Services,
) {
  const { details = false, model = DEFAULT_MODEL } = request.query as Query;
  const start = performance.now();
  const signal = disconnectSignal(reply);
  const clip = await receiveClip(request.raw, body, { timeouts: bodyTimeouts.clip, reservation, signal });
  const receiveMs = performance.now() - start;
  const prediction = await classifier.classifyClip(clip, { owner: request.caller?.owner, signal });
  const { decodeMs, queueMs, inferenceMs } = prediction.timings;
  const stages = {
    receive: receiveMs,
    queue: queueMs,
    decode: decodeMs,
    model: inferenceMs,
    total: performance.now() - start,
  };
  metrics.observeClip(stages, prediction.seconds);
  if (request.caller !== null) audioHours.add(request.caller.owner, prediction.seconds);
  request.span?.addPast('decode', decodeMs, inferenceMs);
  request.span?.addPast('inference', inferenceMs);
  reply.headers({
    'server-timing': Object.entries(stages)
      .map(([stage, ms]) => `${stage};dur=${ms.toFixed(1)}`)
      .join(', '),
    [SPEECH_SECONDS_HEADER]: prediction.speechSeconds.toFixed(2),
    'cache-control': 'no-store',
  });
  const result = resultOf(prediction.models, model);
  if (!details) return result;
  return {
    ...result,
    model,
    weights: classifier.weightsName,
    duration_seconds: Number(prediction.seconds.toFixed(3)),
    speech_seconds: Number(prediction.speechSeconds.toFixed(2)),
    request_id: request.id,
  };
}

/** Aborted when the client disconnects before its answer: disconnecting cancels the work. */
function disconnectSignal(reply: FastifyReply): AbortSignal {
  const disconnected = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) disconnected.abort();
  });
  return disconnected.signal;
}
