import type { IncomingMessage } from 'node:http';
import { ProblemError } from '../problems.ts';
import { goOnLater, mayGoOn } from './turns.ts';

/** How long a sender may take. */
export interface Patience {
  /** The longest silence between two pieces of the body. */
  readonly idleMs: number;
  /** The longest the whole body may take to arrive. */
  readonly totalMs: number;
}

export interface ReceiveLimits extends Patience {
  readonly maxBytes: number;
}

/**
 * Hands a body over piece by piece as it arrives; the sink may return a promise, and the sender then waits.
 * Settles when the body has ended or cannot go on, and leaves the request flowing, so that whatever else
 * arrives is thrown away and the connection can be answered.
 */
export function receive(
  request: IncomingMessage,
  { maxBytes, idleMs, totalMs }: ReceiveLimits,
  sink: (chunk: Buffer) => unknown,
  signal?: AbortSignal,
): Promise<void> {
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > maxBytes) return Promise.reject(tooLarge(maxBytes));
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
      // While we make the sender wait, the silence is ours.
      if (waiting) idle.refresh();
      else tooSlow();
    }

    function finish(error?: unknown): void {
      if (ended) return;
      ended = true;
      clearTimeout(idle);
      clearTimeout(deadline);
      request.off('data', onData).off('error', finish).off('close', onClose);
      // A late error of a socket that is gone has nobody left to tell.
      request.on('error', () => undefined).resume();
      signal?.removeEventListener('abort', onAbort);
      if (error === undefined) resolve();
      else reject(error);
    }
    function onClose(): void {
      finish(new ProblemError('bad_request', 'The connection closed before the whole body had arrived.'));
    }
    function onAbort(): void {
      finish(signal?.reason);
    }
    function onData(chunk: Buffer): void {
      idle.refresh();
      total += chunk.length;
      if (total > maxBytes) {
        finish(tooLarge(maxBytes));
        return;
      }
      try {
        const taken = sink(chunk);
        if (taken instanceof Promise) wait(taken);
        else if (!mayGoOn()) wait(new Promise<void>(goOnLater));
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

function tooLarge(maxBytes: number): ProblemError {
  return new ProblemError('file_too_large', `This path takes at most ${maxBytes} bytes.`, {
    figures: { max_bytes: maxBytes },
  });
}
