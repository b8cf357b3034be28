import { createServer, type RequestListener, type Server } from 'node:http';

/** How long the event loop may go on beginning requests before it goes round. */
const LONGEST_STRETCH_MS = 5;

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

/**
 * Hundreds of requests can arrive in one round of the event loop, and beginning each takes a part of a
 * millisecond. They are begun a few milliseconds' worth at a time, so that those already under way go on.
 */
function inTurns(handler: RequestListener): RequestListener {
  const waiting: Parameters<RequestListener>[] = [];
  let stretchBegan: number | null = null;

  function timeIsLeft(): boolean {
    if (stretchBegan === null) {
      stretchBegan = performance.now();
      setImmediate(goOn);
    }
    return performance.now() - stretchBegan < LONGEST_STRETCH_MS;
  }
  function goOn(): void {
    stretchBegan = null;
    while (waiting.length > 0 && timeIsLeft()) handler(...(waiting.shift() as Parameters<RequestListener>));
  }
  return (request, response) => {
    if (waiting.length === 0 && timeIsLeft()) handler(request, response);
    else waiting.push([request, response]);
  };
}
