import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import {
  DEFAULT_MODEL,
  PATHS,
  type StreamQuery as Query,
  SAMPLE_RATE,
  STREAM_ENCODINGS,
  STREAM_LIMITS,
  type StreamReady,
} from '@undertone/contract';
import { StreamQuery } from '@undertone/contract/schemas';
import type { FastifyRequest } from 'fastify';
import { keyOf, rechecks } from '../http/auth.ts';
import { requireModel } from '../prediction.ts';
import { ProblemError } from '../problems.ts';
import type { Services } from '../services.ts';
import { STREAM_OPERATION } from './describe.ts';
import { StreamSession } from './session.ts';
import { streamFormat } from './windows.ts';

/** Live audio over WebSocket. */
export const streamRoutes: FastifyPluginAsyncTypebox<Services> = async (app, services) => {
  const { classifier, streams, metrics, authenticator } = services;

  app.route({
    method: 'GET',
    url: PATHS.stream,
    exposeHeadRoute: false,
    ...STREAM_OPERATION,
    schema: { ...STREAM_OPERATION.schema, querystring: StreamQuery },
    // Before the upgrade: who is refused here still gets an HTTP answer.
    preHandler: async (request) => {
      requireModel(classifier, request.query.model);
      if (!request.ws || request.caller === null) return;
      const leave = streams.takePlace(request.caller.id);
      const { socket } = request.raw;
      if (socket.destroyed) leave();
      else socket.once('close', leave);
    },
    handler: async () => {
      throw new ProblemError('bad_request', 'This path speaks WebSocket: ask for an upgrade.');
    },
    wsHandler: async (socket, request: FastifyRequest) => {
      const ready = readyMessage(request.id, request.query as Query);
      const session = new StreamSession(socket, {
        ready,
        format: streamFormat(ready.encoding, ready.sample_rate, ready.channels),
        classifier,
        metrics,
        recheckKey: rechecks(authenticator, keyOf(request) ?? ''),
        logger: request.log,
        times: streams.times,
      });
      streams.add(session);
      await session.run();
    },
  });
};

function readyMessage(session_id: string, query: Query): StreamReady {
  return {
    type: 'ready',
    session_id,
    model: query.model ?? DEFAULT_MODEL,
    sample_rate: query.sample_rate ?? SAMPLE_RATE.ideal,
    encoding: query.encoding ?? STREAM_ENCODINGS[0],
    channels: query.channels ?? 1,
    interval: query.interval ?? STREAM_LIMITS.intervalSeconds.default,
  };
}
