import { createServer, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
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
  acceptInTurns(server);
  // An expectation we do not know is no reason to refuse the request that has it.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  return server;
}

/**
 * A connection is not read from until its turn: reading and parsing the first requests of hundreds of new clients
 * in one round would hold the event loop long before any handler could say no.
 */
function acceptInTurns(server: Server): void {
  const accept = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  (server as { pauseOnConnect?: boolean }).pauseOnConnect = true;
  server.on('connection', (socket) => {
    takeTurn(() => {
      for (const listener of accept) listener.call(server, socket);
      socket.resume();
    });
  });
}

function inTurns(handler: RequestListener): RequestListener {
  return (request, response) => takeTurn(() => handler(request, response));
}

function takeTurn(work: () => void): void {
  if (mayGoOn()) work();
  else goOnLater(work);
}
