/** How fast one thread works, measured all the time: what an honest Retry-After and the waiting limit rest on. */
export class Pace {
  /** Milliseconds of one thread for one sample of audio. */
  #msPerSample: number;

  constructor(milliseconds: number, samples: number) {
    this.#msPerSample = milliseconds / samples;
  }

  observe(milliseconds: number, samples: number): void {
    // Slow enough to forget one odd window, quick enough to follow a machine that became busy.
    this.#msPerSample += 0.1 * (milliseconds / samples - this.#msPerSample);
  }

  /** Milliseconds until `threads` threads have worked through this much audio. */
  drainMs(samples: number, threads: number): number {
    return (samples * this.#msPerSample) / Math.max(1, threads);
  }
}
