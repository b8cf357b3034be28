import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';

/** How much longer a client may go on sending after it was answered. */
const DRAIN_MS = 10_000;
const DRAIN_BYTES = 64 * 1024 * 1024;

/**
 * An answer may come before the body has been read: a refused key, a full queue, a file too large. Closing the connection
 * with unread bytes in it makes the client see a reset instead of that answer. So the connection stays open, also for a
 * client that said `Connection: close`, while the rest of the body is read and thrown away, within limits.
 */
export function drainUnreadBodies(app: FastifyInstance): void {
  app.addHook('onSend', async (request, reply) => {
    const { headers, complete, readableEnded } = request.raw;
    const hasBody = Number(headers['content-length'] ?? 0) > 0 || headers['transfer-encoding'] !== undefined;
    if (!hasBody || complete || readableEnded) return;
    reply.removeHeader('connection');
    drainUnreadBody(request.raw, reply.raw);
  });
}

function drainUnreadBody(request: IncomingMessage, response: ServerResponse): void {
  const { socket } = request;
  const wantsClose = !response.shouldKeepAlive;
  // Node would close right after the answer; here the client closes, or we do when the body has ended.
  response.shouldKeepAlive = true;
  const startBytes = socket.bytesRead;
  const deadline = performance.now() + DRAIN_MS;
  request.on('error', () => undefined).resume();
  const timer = setInterval(() => {
    const done = request.complete || socket.destroyed;
    if (done || performance.now() > deadline || socket.bytesRead - startBytes > DRAIN_BYTES) {
      clearInterval(timer);
      if (!done) request.destroy();
      else if (wantsClose) socket.end();
    }
  }, 50);
}
