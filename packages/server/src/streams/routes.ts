import type { IncomingMessage } from 'node:http';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import websocket from '@fastify/websocket';
import {
  DEFAULT_MODEL,
  PATHS,
  type StreamQuery as Query,
  SAMPLE_RATE,
  STREAM_ENCODINGS,
  STREAM_LIMITS,
  STREAM_PROTOCOL,
  type StreamReady,
} from '@undertone/contract';
import { StreamQuery } from '@undertone/contract/schemas';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { callerOf, keyOf, rechecks } from '../http/auth.ts';
import { requireModel } from '../prediction.ts';
import { ProblemError } from '../problems.ts';
import type { Services } from '../services.ts';
import { STREAM_OPERATION } from './describe.ts';
import type { Streams } from './registry.ts';
import { WebSocketSession } from './websocket-session.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route accepts WebSocket connections. */
    webSocket?: boolean;
  }
}

/** Other upgrades are ignored, such as HTTP/2 without TLS, which some clients offer with every request. */
export function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}

/**
 * Sends upgrade requests through the same hooks as all others, so that a refused one is answered with a problem. At
 * shutdown, streams are closed before connections are.
 */
export async function acceptWebSockets(app: FastifyInstance, streams: Streams): Promise<void> {
  await app.register(websocket, {
    options: {
      maxPayload: STREAM_LIMITS.maxMessageBytes,
      handleProtocols: (offered) => offered.has(STREAM_PROTOCOL) && STREAM_PROTOCOL,
    },
    errorHandler: (_error, socket) => socket.terminate(),
    preClose: (done) => void streams.stop().then(() => done()),
  });
}

export function refuseOtherUpgrades(app: FastifyInstance): void {
  app.addHook('onRequest', async (request) => {
    if (request.ws && !request.is404 && !request.routeOptions.config.webSocket) {
      throw new ProblemError('bad_request', 'This path does not accept WebSocket connections.');
    }
  });
}

/** Live audio over WebSocket. */
export const streamRoutes: FastifyPluginAsyncTypebox<Services> = async (app, services) => {
  const { classifier, streams, metrics, tokens, audioHours } = services;

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
      await audioHours.require(request.caller);
      const releaseSlot = streams.reserveSlot(request.caller);
      const { socket } = request.raw;
      if (socket.destroyed) releaseSlot();
      else socket.once('close', releaseSlot);
    },
    handler: async () => {
      throw new ProblemError('bad_request', 'This path accepts WebSocket connections only.');
    },
    wsHandler: async (socket, request: FastifyRequest) => {
      const ready = readyMessage(request.id, request.query as Query);
      const session = new WebSocketSession(socket, request.raw.socket, ready, {
        classifier,
        metrics,
        memory: streams.held.hold(callerOf(request).owner),
        recheckKey: rechecks(tokens, keyOf(request) ?? ''),
        addAudio: (seconds) => audioHours.use(callerOf(request), seconds),
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
