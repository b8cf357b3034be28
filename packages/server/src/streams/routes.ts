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
import { WebSocketSession } from './websocket-session.ts';

/** Live audio over WebSocket. */
export const streamRoutes: FastifyPluginAsyncTypebox<Services> = async (app, services) => {
  const { classifier, streams, metrics, authenticator } = services;

  app.route({
    method: 'GET',
    url: PATHS.stream,
    exposeHeadRoute: false,
    ...STREAM_OPERATION,
    schema: { ...STREAM_OPERATION.schema, querystring: StreamQuery },
    // Runs before the upgrade, so a refusal is still an HTTP response.
    preHandler: async (request) => {
      requireModel(classifier, request.query.model);
      if (!request.ws || request.caller === null) return;
      const releaseSlot = streams.reserveSlot(request.caller.id);
      const { socket } = request.raw;
      if (socket.destroyed) releaseSlot();
      else socket.once('close', releaseSlot);
    },
    handler: async () => {
      throw new ProblemError('bad_request', 'This path accepts WebSocket connections only.');
    },
    wsHandler: async (socket, request: FastifyRequest) => {
      const session = new WebSocketSession(socket, readyMessage(request.id, request.query as Query), {
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
