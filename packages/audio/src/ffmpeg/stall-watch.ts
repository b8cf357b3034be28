/**
 * Notices that a child process is stuck: it neither takes nor gives a byte for so long. While the recording is slow to
 * arrive, or its user slow to take the output, the watch is paused.
 */
export class StallWatch {
  readonly #timer: NodeJS.Timeout;
  #quietSince = performance.now();
  #pauses = 0;
  stalled = false;

  constructor(limitMs: number, onStall: () => void) {
    this.#timer = setInterval(() => {
      if (this.#pauses > 0 || performance.now() - this.#quietSince < limitMs) return;
      this.stalled = true;
      this.stop();
      onStall();
    }, limitMs / 10);
  }

  pause(): void {
    this.#pauses++;
  }

  resume(): void {
    this.#pauses--;
    this.#quietSince = performance.now();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
