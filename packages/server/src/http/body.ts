import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough, type Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { ProblemError } from '../problems.ts';

export interface BodyTimeouts {
  /** Maximum pause between two chunks. */
  readonly idleMs: number;
  /** Maximum time for the whole body. */
  readonly totalMs: number;
}

export interface BodyLimits extends BodyTimeouts {
  readonly maxBytes: number;
}

/** For routes that read their body themselves, as a stream. */
export function leaveBodiesUnread(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
}

/** The Content-Length; undefined for a chunked body. */
export function announcedBytes({ headers }: IncomingMessage): number | undefined {
  const length = headers['content-length'];
  return length === undefined ? undefined : Number(length);
}

/**
 * Passes a body on chunk by chunk. While a promise that `onChunk` returned is pending, the sender waits (backpressure).
 * Afterwards the request keeps flowing: the rest of the body is discarded, so that the client can read its response.
 */
export function receiveBody(
  request: IncomingMessage,
  { maxBytes, idleMs, totalMs }: BodyLimits,
  onChunk: (chunk: Buffer) => unknown,
  signal?: AbortSignal,
): Promise<void> {
  if ((announcedBytes(request) ?? 0) > maxBytes) return Promise.reject(bodyTooLarge(maxBytes));
  return new Promise<void>((resolve, reject) => {
    let total = 0;
    let ended = false;
    let waiting = false;
    const idle = setTimeout(onIdle, idleMs);
    const deadline = setTimeout(tooSlow, totalMs);

    function tooSlow(): void {
      const detail = `Send the whole body within ${totalMs / 1000} s and without pauses of ${idleMs / 1000} s.`;
      finish(new ProblemError('request_timeout', detail));
    }
    function onIdle(): void {
      // The pause is our own backpressure.
      if (waiting) idle.refresh();
      else tooSlow();
    }
    function finish(error?: unknown): void {
      if (ended) return;
      ended = true;
      clearTimeout(idle);
      clearTimeout(deadline);
      request.off('data', onData).off('error', finish).off('close', onClose);
      // Ignore late errors of a closed socket.
      request.on('error', () => undefined).resume();
      signal?.removeEventListener('abort', onAbort);
      if (error === undefined) resolve();
      else reject(error);
    }
    function onClose(): void {
      finish(new ProblemError('bad_request', 'The connection closed before the whole body arrived.'));
    }
    function onAbort(): void {
      finish(signal?.reason);
    }
    function onData(chunk: Buffer): void {
      idle.refresh();
      total += chunk.length;
      if (total > maxBytes) {
        finish(bodyTooLarge(maxBytes));
        return;
      }
      try {
        const taken = onChunk(chunk);
        if (taken instanceof Promise) wait(taken);
      } catch (error) {
        finish(error);
      }
    }
    function wait(taken: Promise<unknown>): void {
      waiting = true;
      request.pause();
      taken.then(() => {
        waiting = false;
        idle.refresh();
        if (!ended) request.resume();
      }, finish);
    }

    if (signal?.aborted) {
      onAbort();
      return;
    }
    signal?.addEventListener('abort', onAbort, { once: true });
    request
      .on('data', onData)
      .once('end', () => finish())
      .once('error', finish)
      .once('close', onClose);
  });
}

/** `receiveBody`, or a function that extracts something from the body. */
type Receive = (
  request: IncomingMessage,
  limits: BodyLimits,
  onChunk: (chunk: Buffer) => unknown,
  signal: AbortSignal,
) => Promise<void>;

/** The body as a stream, which fails with the error of the body. */
export function bodyStream(
  request: IncomingMessage,
  limits: BodyLimits,
  signal: AbortSignal,
  receive: Receive = receiveBody,
): Readable {
  const stream = new PassThrough();
  // It may fail before it is read; the reader then gets the error.
  stream.on('error', () => undefined);
  const stop = new AbortController();
  stream.once('close', () => stop.abort(new Error('the reader of the body stopped')));
  const signals = AbortSignal.any([signal, stop.signal]);
  receive(
    request,
    limits,
    (chunk) => (stream.write(chunk) ? undefined : once(stream, 'drain', { signal: stop.signal })),
    signals,
  ).then(
    () => stream.end(),
    (error) => stream.destroy(error),
  );
  return stream;
}

export function bodyTooLarge(maxBytes: number): ProblemError {
  return new ProblemError('file_too_large', `The body may have at most ${maxBytes} bytes.`, {
    figures: { max_bytes: maxBytes },
  });
}

/** How long, and how much, a client may keep sending after its response. */
const DRAIN_MS = 10_000;
const DRAIN_BYTES = 64 * 1024 * 1024;

/**
 * A response can be sent before the body is read: invalid key, full queue, file too large. Closing the connection with
 * unread bytes would make the client see a reset instead of that response. So the rest of the body is read and discarded,
 * within limits, even for a client that sent `Connection: close`.
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
  // Node would close right after the response. Instead the client closes, or we do at the end of the body.
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
  }, 50).unref(); // the socket, not the timer, keeps a process running
}
