// The real store thread, with a clock that the test moves and that can be made to hang.
import { workerData } from 'node:worker_threads';

const clock = new Float64Array(workerData.shared, 0, 1);
const hangs = new Int32Array(workerData.shared, 8, 1);

Date.now = () => {
  Atomics.wait(hangs, 0, 1);
  return clock[0] ?? 0;
};

await import('../../../src/stores/sqlite/thread.ts');
