const TICKS = 10;

/**
 * Notices that a child process is stuck: it neither takes nor gives a byte for so long. While the recording is slow to
 * arrive, or its user slow to take the output, the watch is paused.
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
