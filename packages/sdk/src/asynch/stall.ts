/** A part nobody takes a byte of for this long, or answers for this long, is cut off and sent again. */
const STALL_LIMIT_MS = 120_000;

/** Watches that an attempt moves, and remembers when it was the file that failed. */
export class Stall {
  readonly #controller = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #over = false;
  sourceFailure: unknown;

  constructor() {
    this.moved();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  moved(): void {
    clearTimeout(this.#timer);
    // A connection that was cut may still be reading ahead: nobody waits for that any more.
    if (!this.#over) this.#timer = setTimeout(() => this.#controller.abort(), STALL_LIMIT_MS);
  }

  over(): void {
    this.#over = true;
    clearTimeout(this.#timer);
  }
}
