import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import {
  DEFAULT_MODEL,
  PATHS,
  type DiscreteQuery as Query,
  SPEECH_SECONDS_HEADER,
} from '@undertone/contract';
import { DiscreteQuery } from '@undertone/contract/schemas';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { DISCRETE_OPERATION, DISCRETE_SHORT_OPERATION } from '../openapi/operations.ts';
import { requireModel, resultOf } from '../prediction.ts';
import { ProblemError } from '../problems.ts';
import type { Services } from '../services.ts';
import { Admission, type Reservation } from './admission.ts';
import { type ClipBody, clipBody, receiveClip } from './receive.ts';

const MAX_BODY_BYTES = 256 * 1024 * 1024;
const MAX_WAIT_MS = 2_000;

/** One operation under two paths: a short recording in, its emotion out. */
export const discreteRoutes: FastifyPluginAsyncTypebox<Services> = async (app, services) => {
  const { classifier, metrics, settings, bodyTimeouts } = services;
  const admission = new Admission({
    maxInFlight: settings.queueLimit + classifier.stats().threads,
    maxBytes: MAX_BODY_BYTES,
    maxWaitMs: MAX_WAIT_MS,
    expectedWaitMs: (requests) => classifier.expectedWaitMs(requests),
  });
  metrics.watchAdmission(() => admission.inFlight);

  // Bodies are left where they are until the request is admitted.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));

  async function classify(
    request: FastifyRequest,
    reply: FastifyReply,
    body: ClipBody,
    reservation: Reservation,
  ) {
    const { details = false, model = DEFAULT_MODEL } = request.query as Query;
    const start = performance.now();
    const signal = goneSignal(reply);
    const clip = await receiveClip(request.raw, body, { timeouts: bodyTimeouts.clip, reservation, signal });
    const receiveMs = performance.now() - start;
    const prediction = await classifier.classifyClip(clip, { signal });
    const { decodeMs, queueMs, inferenceMs } = prediction.timings;
    const stages = {
      receive: receiveMs,
      queue: queueMs,
      decode: decodeMs,
      model: inferenceMs,
      total: performance.now() - start,
    };
    metrics.observeClip(stages, prediction.seconds);
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

  for (const [url, operation] of [
    [PATHS.discrete, DISCRETE_OPERATION],
    [PATHS.discreteShort, DISCRETE_SHORT_OPERATION],
  ] as const) {
    app.post(
      url,
      { ...operation, schema: { ...operation.schema, querystring: DiscreteQuery } },
      async (request, reply) => {
        requireModel(classifier, request.query.model);
        if (request.query.channels !== undefined) {
          throw new ProblemError(
            'bad_request',
            'Short recordings are always mixed down to one channel. The asynch interface takes channels=separate.',
          );
        }
        const body = clipBody(request.raw);
        return admission.run(body.announced, (reservation) =>
          classify(request as FastifyRequest, reply, body, reservation),
        );
      },
    );
  }
};

/** Aborted when the client hangs up before it was answered: nobody wants that prediction any more. */
function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort();
  });
  return gone.signal;
}
