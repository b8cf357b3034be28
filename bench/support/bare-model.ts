import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/** The model without the service: one session per thread, running 5 s windows in sequence. */
export class BareModel {
  readonly #workers: readonly Worker[];

  static async start(threads: number): Promise<BareModel> {
    const workers = Array.from(
      { length: threads },
      () => new Worker(new URL('./bare-thread.ts', import.meta.url)),
    );
    // All threads are loaded and warm before the first measurement.
    await Promise.all(workers.map((worker) => once(worker, 'message')));
    return new BareModel(workers);
  }

  private constructor(workers: readonly Worker[]) {
    this.#workers = workers;
  }

  /** Milliseconds for one window on one thread. */
  async windowMs(): Promise<number> {
    const [worker] = this.#workers;
    if (worker === undefined) throw new RangeError('A bare model needs a thread');
    return runWindows(worker, 1);
  }

  /** Throughput of all threads together. */
  async windowsPerSecond(windowsEach: number): Promise<number> {
    const start = performance.now();
    await Promise.all(this.#workers.map((worker) => runWindows(worker, windowsEach)));
    return (1000 * windowsEach * this.#workers.length) / (performance.now() - start);
  }

  async close(): Promise<void> {
    // Not `terminate`: ending a thread inside the runtime would crash the process.
    for (const worker of this.#workers) worker.postMessage(0);
    await Promise.all(this.#workers.map((worker) => once(worker, 'exit')));
  }
}

async function runWindows(worker: Worker, windows: number): Promise<number> {
  worker.postMessage(windows);
  const [milliseconds] = await once(worker, 'message');
  return milliseconds as number;
}
