// The model with nothing around it: sessions in threads, each hearing 5 s windows one after another.
import { Worker } from 'node:worker_threads';

/** Seconds that `threads` sessions together need for one window, measured over `windows` of them. */
export async function secondsPerWindow(threads: number, windows: number): Promise<number> {
  const each = Math.ceil(windows / threads);
  const workers = Array.from(
    { length: threads },
    () => new Worker(new URL('./bare-thread.ts', import.meta.url), { workerData: { windows: each } }),
  );
  // All are loaded and warm before the first one begins.
  await Promise.all(workers.map(nextMessage));
  const start = performance.now();
  for (const worker of workers) worker.postMessage('go');
  await Promise.all(workers.map(nextMessage));
  const seconds = (performance.now() - start) / 1000;
  await Promise.all(workers.map((worker) => worker.terminate()));
  return seconds / (each * threads);
}

function nextMessage(worker: Worker): Promise<unknown> {
  return new Promise((resolve, reject) => {
    worker.once('message', resolve).once('error', reject);
  });
}
