/**
 * Notices that a child process is stuck: it neither takes nor gives a byte for so long, although
 * nobody else is to blame. Waiting for the recording to arrive or to be used is excused.
 */
export class StallWatch {
  readonly #timer: NodeJS.Timeout;
  #quietSince = performance.now();
  #excuses = 0;
  stalled = false;

  constructor(limitMs: number, onStall: () => void) {
    this.#timer = setInterval(() => {
      if (this.#excuses > 0 || performance.now() - this.#quietSince < limitMs) return;
      this.stalled = true;
      this.stop();
      onStall();
    }, limitMs / 10);
  }

  excuse(): void {
    this.#excuses++;
  }

  resume(): void {
    this.#excuses--;
    this.#quietSince = performance.now();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
