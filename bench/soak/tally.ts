import { median, percentile } from '../support/report.ts';

const SHOWN_FAILURES = 20;

/** What a process of load did since it was last asked. */
export interface Lap {
  readonly counts: Readonly<Record<string, number>>;
  readonly clipMedianMs: number | null;
  readonly clipP99Ms: number | null;
  readonly failed: number;
  /** Some of them. */
  readonly failures: readonly string[];
  /** Memory of that process now. */
  readonly megabytes: number;
}

/** Counts for one lap; `lap` begins the next, so that the memory it takes does not grow. */
export class Tally {
  #counts: Record<string, number> = {};
  #clipsMs: number[] = [];
  #failures: string[] = [];
  #failed = 0;

  count(what: string): void {
    this.#counts[what] = (this.#counts[what] ?? 0) + 1;
  }

  clip(ms: number): void {
    this.#clipsMs.push(ms);
  }

  fail(why: string): void {
    this.#failed++;
    if (this.#failures.length < SHOWN_FAILURES) this.#failures.push(why.slice(0, 300));
  }

  lap(): Lap {
    const [counts, clips, failures, failed] = [this.#counts, this.#clipsMs, this.#failures, this.#failed];
    this.#counts = {};
    this.#clipsMs = [];
    this.#failures = [];
    this.#failed = 0;
    const orNull = (value: number) => (Number.isNaN(value) ? null : value);
    return {
      counts,
      clipMedianMs: orNull(median(clips)),
      clipP99Ms: orNull(percentile(clips, 0.99)),
      failed,
      failures,
      megabytes: process.memoryUsage.rss() / 1e6,
    };
  }
}
