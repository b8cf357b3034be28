import { availableParallelism } from 'node:os';
import { AudioError } from '../errors.ts';

/**
 * ffmpeg is a process of some 50 MB for each recording: a few run at a time, some wait, and the
 * rest are told to come back.
 */
const MOST_RUNNING = Math.max(4, 2 * availableParallelism());
const MOST_WAITING = 64;

const waiting: Array<() => void> = [];
let running = 0;

/** Waits for a place to run in; call what it returns to leave it. */
export async function takeSlot(signal?: AbortSignal): Promise<() => void> {
  signal?.throwIfAborted();
  if (running < MOST_RUNNING) running++;
  else await queue(signal);
  return () => {
    const next = waiting.shift();
    if (next === undefined) running--;
    else next();
  };
}

function queue(signal: AbortSignal | undefined): Promise<void> {
  if (waiting.length >= MOST_WAITING) {
    throw new AudioError('overloaded', 'Too many compressed recordings at once. Try again in a moment.');
  }
  return new Promise((resolve, reject) => {
    const enter = (): void => {
      signal?.removeEventListener('abort', leave);
      resolve();
    };
    const leave = (): void => {
      waiting.splice(waiting.indexOf(enter), 1);
      reject(signal?.reason);
    };
    waiting.push(enter);
    signal?.addEventListener('abort', leave, { once: true });
  });
}
