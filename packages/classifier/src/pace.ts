/** How fast one thread works, measured all the time: what an honest Retry-After rests on. */
export class Pace {
  /** Milliseconds of one thread for one second of sound. */
  #msPerSecond: number;

  constructor(milliseconds: number, seconds: number) {
    this.#msPerSecond = milliseconds / seconds;
  }

  observe(milliseconds: number, seconds: number): void {
    // Slow enough to forget one odd task, quick enough to follow a machine that became busy.
    this.#msPerSecond += 0.1 * (milliseconds / seconds - this.#msPerSecond);
  }

  /** Milliseconds until `threads` threads have worked through this much sound. */
  drainMs(seconds: number, threads: number): number {
    return (seconds * this.#msPerSecond) / Math.max(1, threads);
  }
}
