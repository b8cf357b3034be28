import type { IncomingMessage } from 'node:http';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { DEFAULT_MODEL, type ModelId, PATHS, SPEECH_SECONDS_HEADER } from '@undertone/contract';
import { DiscreteQuery } from '@undertone/contract/schemas';
import type { FastifyReply } from 'fastify';
import { DISCRETE_OPERATION, DISCRETE_SHORT_OPERATION } from '../openapi/operations.ts';
import { toResult } from '../prediction.ts';
import type { Services } from '../services.ts';
import { Admission } from './admission.ts';
import { receiveClip } from './clip.ts';

/** One operation under two paths: a short recording in, its emotion out. */
export const discreteRoutes: FastifyPluginAsyncTypebox<Services> = async (app, services) => {
  const { classifier, metrics, settings, ffmpegPath, clipPatience: patience } = services;
  const { workers } = classifier.stats();
  const admission = new Admission(settings.queueLimit + workers, workers);
  metrics.watchAdmission(() => admission.inHand);

  // Bodies are left where they are: they are read as they arrive, once there is a place for them.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));

  async function classify(
    body: IncomingMessage,
    model: ModelId,
    reply: FastifyReply,
    heard: (threadMs: number) => void,
  ) {
    const start = performance.now();
    const signal = goneSignal(reply);
    const clip = await receiveClip(body, { ffmpegPath, signal, patience });
    const decodeMs = performance.now() - start;
    const prediction = await classifier.classify(clip.samples, { priority: 'discrete', signal });
    const { queueMs, inferenceMs, threadMs } = prediction.timings;
    heard(threadMs);
    const stages = { decode: decodeMs, queue: queueMs, model: inferenceMs, total: performance.now() - start };
    metrics.observeClip(stages, clip.seconds);
    reply.headers({
      'server-timing': Object.entries(stages)
        .map(([stage, ms]) => `${stage};dur=${ms.toFixed(1)}`)
        .join(', '),
      [SPEECH_SECONDS_HEADER]: prediction.speechSeconds.toFixed(2),
      'cache-control': 'no-store',
    });
    return toResult(prediction.models[model] ?? {});
  }

  for (const [url, operation] of [
    [PATHS.discrete, DISCRETE_OPERATION],
    [PATHS.discreteShort, DISCRETE_SHORT_OPERATION],
  ] as const) {
    app.post(
      url,
      { ...operation, schema: { ...operation.schema, querystring: DiscreteQuery } },
      (request, reply) =>
        admission.hold((heard) => classify(request.raw, request.query.model ?? DEFAULT_MODEL, reply, heard)),
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
