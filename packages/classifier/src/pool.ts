import { setTimeout as sleep } from 'node:timers/promises';
import { InferenceThread, type ThreadOptions } from './inference-thread.ts';

export interface PoolOptions {
  size: number;
  thread: ThreadOptions;
  /** A replacement is ready for work. */
  onReady: () => void;
  /** A replacement could not be started. */
  onStartFailed: (error: Error) => void;
}

/** First delay before a lost thread is replaced. Doubles with every failure, up to 100 times. */
const BACK_OFF_MS = 100;

/** Keeps `size` inference threads alive: replaces lost ones, with exponential back-off while that fails. */
export class Pool {
  readonly threads = new Set<InferenceThread>();
  readonly #options: PoolOptions;
  readonly #closing = new AbortController();
  readonly #replacements = new Set<Promise<void>>();
  #restarts = 0;

  /** Rejects if any thread cannot be started, after stopping the others. */
  static async start(options: PoolOptions): Promise<Pool> {
    const starts = Array.from({ length: options.size }, () => InferenceThread.start(options.thread));
    const results = await Promise.allSettled(starts);
    const threads = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const failure = results.find((result) => result.status === 'rejected');
    if (failure !== undefined) {
      await Promise.all(threads.map((thread) => thread.stop()));
      throw failure.reason;
    }
    return new Pool(options, threads);
  }

  private constructor(options: PoolOptions, threads: InferenceThread[]) {
    this.#options = options;
    for (const thread of threads) this.#adopt(thread, 0);
  }

  /** Number of replacements so far. */
  get restarts(): number {
    return this.#restarts;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#replacements);
    await Promise.all([...this.threads].map((thread) => thread.stop()));
  }

  /** `failures` precede this thread in a row. The count continues if it is lost before its first response. */
  #adopt(thread: InferenceThread, failures: number): void {
    this.threads.add(thread);
    thread.ended.then(() => {
      this.threads.delete(thread);
      if (this.#closing.signal.aborted) return;
      const replacement = this.#replace(thread.hasServed ? 0 : failures).finally(() =>
        this.#replacements.delete(replacement),
      );
      this.#replacements.add(replacement);
    });
  }

  async #replace(failuresBefore: number): Promise<void> {
    for (let failures = failuresBefore; ; failures++) {
      const pause = BACK_OFF_MS * Math.min(100, 2 ** failures);
      await sleep(pause, undefined, { signal: this.#closing.signal }).catch(() => undefined);
      if (this.#closing.signal.aborted) return;
      try {
        this.#restarts++;
        this.#adopt(await InferenceThread.start(this.#options.thread), failures + 1);
        this.#options.onReady();
        return;
      } catch (error) {
        this.#options.onStartFailed(error as Error);
      }
    }
  }
}
