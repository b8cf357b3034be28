import assert from 'node:assert/strict';
import { after, before, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { TEST_MODELS } from '@undertone/testing/paths';
import { Classifier, type ClassifierOptions } from '../../src/index.ts';

// Node emits an event for every new worker: gives the tests access to the real threads.
const workers: Worker[] = [];
const remember = (worker: Worker) => workers.push(worker);
before(() => process.on('worker', remember));
after(() => process.off('worker', remember));

/** A classifier that is closed after the test, and its threads including replacements. */
export async function start(t: TestContext, options: ClassifierOptions) {
  const first = workers.length;
  const classifier = await Classifier.start({ modelsDir: TEST_MODELS, ...options });
  t.after(() => classifier.close());
  return { classifier, threads: () => workers.slice(first) };
}

/** An unknown message crashes a thread. A task sent right after it is lost with the thread. */
export const kill = (thread: Worker | undefined) => thread?.postMessage({ kind: 'nonsense' });

export async function until(condition: () => boolean, what: string): Promise<void> {
  for (let waited = 0; !condition(); waited += 20) {
    assert.ok(waited < 60_000, `waited too long for: ${what}`);
    await sleep(20);
  }
}
