import { createServer, type RequestListener, type Server } from 'node:http';
import { goOnLater, mayGoOn } from './turns.ts';

/** The server under the app, with its limits on connections. */
export function createHttpServer(handler: RequestListener): Server {
  const server = createServer(
    {
      // Slow clients: headers within 10 s. Bodies have their own, stricter watch where they are read, and this
      // outermost limit lets the largest part of an upload through on a slow line.
      headersTimeout: 10_000,
      requestTimeout: 15 * 60_000,
      connectionsCheckingInterval: 5_000,
      keepAliveTimeout: 65_000,
    },
    inTurns(handler),
  );
  server.maxConnections = 2_048;
  // An expectation we do not know is no reason to refuse the request that has it.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  return server;
}

function inTurns(handler: RequestListener): RequestListener {
  return (request, response) => {
    if (mayGoOn()) handler(request, response);
    else goOnLater(() => handler(request, response));
  };
}
