import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/** The model with nothing around it: one session in each thread, which runs 5 s windows one after another. */
export class BareModel {
  readonly #workers: readonly Worker[];

  static async start(threads: number): Promise<BareModel> {
    const workers = Array.from(
      { length: threads },
      () => new Worker(new URL('./bare-thread.ts', import.meta.url)),
    );
    // All are loaded and warm before the first one begins.
    await Promise.all(workers.map((worker) => once(worker, 'message')));
    return new BareModel(workers);
  }

  private constructor(workers: readonly Worker[]) {
    this.#workers = workers;
  }

  /** Milliseconds of one window in one thread. */
  async windowMs(): Promise<number> {
    const [worker] = this.#workers;
    if (worker === undefined) throw new RangeError('a bare model without threads');
    return runWindows(worker, 1);
  }

  /** Windows that all threads together get done in a second. */
  async windowsPerSecond(windowsEach: number): Promise<number> {
    const start = performance.now();
    await Promise.all(this.#workers.map((worker) => runWindows(worker, windowsEach)));
    return (1000 * windowsEach * this.#workers.length) / (performance.now() - start);
  }

  async close(): Promise<void> {
    // Not `terminate`: a thread that ends inside the runtime would take the process with it.
    for (const worker of this.#workers) worker.postMessage(0);
    await Promise.all(this.#workers.map((worker) => once(worker, 'exit')));
  }
}

async function runWindows(worker: Worker, windows: number): Promise<number> {
  worker.postMessage(windows);
  const [milliseconds] = await once(worker, 'message');
  return milliseconds as number;
}
