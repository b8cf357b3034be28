const TICKS = 10;

/**
 * Detects a stuck child process: one that neither reads nor writes a byte for `limitMs`. Paused while the recording is
 * slow to arrive or the output slow to be consumed.
 */
export class StallWatch {
  readonly #timer: NodeJS.Timeout;
  #quietTicks = 0;
  #pauses = 0;
  stalled = false;

  constructor(limitMs: number, onStall: () => void) {
    this.#timer = setInterval(() => {
      if (this.#pauses > 0 || ++this.#quietTicks < TICKS) return;
      this.stalled = true;
      this.stop();
      onStall();
    }, limitMs / TICKS);
  }

  pause(): void {
    this.#pauses++;
  }

  resume(): void {
    this.#pauses--;
    this.#quietTicks = 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
