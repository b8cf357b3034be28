import { setTimeout as sleep } from 'node:timers/promises';
import { StoreUnavailableError } from '../../server/src/stores/errors.ts';
import { LONG_TIMEOUT_MS } from './timeouts.ts';

/** Retries while the store is unavailable. */
export async function eventually<T>(work: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + LONG_TIMEOUT_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreUnavailableError) || performance.now() > deadline) throw error;
      await sleep(10);
    }
  }
}
