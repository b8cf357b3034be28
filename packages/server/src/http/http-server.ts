import { createServer, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { QuietConnections } from './quiet-connections.ts';
import { goOnLater, mayGoOn } from './turns.ts';

/** The server under the app, with its limits on connections. */
export function createHttpServer(handler: RequestListener): Server {
  const quiet = new QuietConnections();
  const server = createServer(
    {
      // Slow clients: headers within 10 s. Bodies have their own, stricter watch where they are read, and this
      // outermost limit lets the largest part of an upload through on a slow line.
      headersTimeout: 10_000,
      requestTimeout: 15 * 60_000,
      connectionsCheckingInterval: 5_000,
      keepAliveTimeout: 65_000,
      // Less than one reading from a socket brings: a body whose turn has not come is read from once, not twice.
      highWaterMark: 16 * 1024,
    },
    inTurns(handler, quiet),
  );
  server.maxConnections = 2_048;
  acceptInTurns(server, quiet);
  // An expectation we do not know is no reason to refuse the request that has it.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  return server;
}

/**
 * A connection is not read from until its turn: reading and parsing the first requests of hundreds of new clients
 * in one round would hold the event loop long before any handler could say no.
 */
function acceptInTurns(server: Server, quiet: QuietConnections): void {
  const accept = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  (server as { pauseOnConnect?: boolean }).pauseOnConnect = true;
  server.on('connection', (socket) => {
    const begin = () => {
      for (const listener of accept) listener.call(server, socket);
      quiet.add(socket);
      socket.once('close', () => quiet.delete(socket));
      socket.resume();
    };
    if (mayGoOn()) begin();
    else goOnLater(begin);
  });
}

/** A request that comes too late for this round waits for a later one, and nobody else is listened to until then. */
function inTurns(handler: RequestListener, quiet: QuietConnections): RequestListener {
  return (request, response) => {
    const { socket } = request;
    quiet.delete(socket);
    response.once('close', () => quiet.add(socket));
    if (mayGoOn()) {
      handler(request, response);
    } else {
      quiet.hold();
      goOnLater(() => handler(request, response));
    }
  };
}
