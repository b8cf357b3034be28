import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { goOnLater, mayGoOn } from './turns.ts';

/** How much longer a client may go on sending after it was answered. */
const LINGER_MS = 10_000;
const LINGER_BYTES = 64 * 1024 * 1024;

/**
 * An answer may come before the body has been read: a refused key, a full queue, a file too large. Closing the
 * connection at once would make many clients report a broken pipe instead of that answer, so the rest of the
 * body is read and thrown away, within limits.
 */
export function lingerAfterEarlyAnswers(app: FastifyInstance): void {
  app.addHook('onSend', async (request) => {
    if (request.raw.complete === false) discard(request.raw);
  });
}

function discard(request: IncomingMessage): void {
  const { socket } = request;
  const startBytes = socket.bytesRead;
  const deadline = performance.now() + LINGER_MS;
  request.on('data', () => {
    if (mayGoOn()) return;
    request.pause();
    goOnLater(() => request.resume());
  });
  request.resume();
  const timer = setInterval(() => {
    if (request.complete || socket.destroyed) clearInterval(timer);
    else if (performance.now() > deadline || socket.bytesRead - startBytes > LINGER_BYTES) socket.destroy();
  }, 250).unref();
}
