import { setImmediate as nextTurn } from 'node:timers/promises';

let last: Promise<void> = Promise.resolve();

/**
 * Between two slices of a long loop: one slice per turn of the event loop, for all callers together. However many of them
 * loop at the same time, every other request waits for one slice only.
 */
export function nextSlice(): Promise<void> {
  last = last.then(() => nextTurn());
  return last;
}
