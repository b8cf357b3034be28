import type { Log } from '../log.ts';
import type { Progress, ProgressListener } from '../types.ts';
import type { Bar } from './bar.ts';

/** Passes progress on to the listener and the bar. A part that is sent again does not set it back. */
export class Reporter {
  readonly #listener: ProgressListener | undefined;
  readonly #bar: Bar | undefined;
  readonly #log: Log;
  #latest: Progress | undefined;

  constructor(listener: ProgressListener | undefined, bar: Bar | undefined, log: Log) {
    this.#listener = listener;
    this.#bar = bar;
    this.#log = log;
  }

  report(progress: Progress): void {
    const latest = this.#latest;
    if (latest?.status === progress.status && progress.progress < latest.progress) return;
    this.#latest = progress;
    this.#bar?.show(progress);
    try {
      this.#listener?.(progress);
    } catch (error) {
      // The recording is worth more than the listener.
      this.#log.error(`onProgress threw: ${String(error)}`);
    }
  }

  /** Leaves the bar's line as it is; called however the operation ends. */
  end(): void {
    this.#bar?.end();
  }
}
