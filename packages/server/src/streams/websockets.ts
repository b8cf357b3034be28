import type { IncomingMessage } from 'node:http';
import websocket from '@fastify/websocket';
import { STREAM_LIMITS, STREAM_PROTOCOL } from '@undertone/contract';
import type { FastifyInstance } from 'fastify';
import { ProblemError } from '../problems.ts';
import type { Streams } from './registry.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route takes WebSocket connections. */
    webSocket?: boolean;
  }
}

/** Other upgrades (HTTP/2 without TLS, which some clients offer with every request) are not taken up. */
export function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}

/**
 * A request for a WebSocket goes through the same hooks as any other, so that a refused one is answered with a problem.
 * On a stop, streams are told and closed before connections are.
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
  app.addHook('onRequest', async (request) => {
    if (request.ws && !request.is404 && !request.routeOptions.config.webSocket) {
      throw new ProblemError('bad_request', 'This path does not speak WebSocket.');
    }
  });
}
