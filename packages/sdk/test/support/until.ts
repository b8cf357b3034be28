import { setTimeout as sleep } from 'node:timers/promises';
import { LONG_TIMEOUT_MS } from '@undertone/testing/timeouts';

/** Waits until a condition holds, and fails if it does not in a long time. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + LONG_TIMEOUT_MS;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`never: ${what}`);
    await sleep(5);
  }
}
