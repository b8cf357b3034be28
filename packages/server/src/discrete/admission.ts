import { retryLater } from '../problems.ts';

/**
 * The door of the discrete interface. Only so many requests are in hand at once, from the first byte of a body
 * to the answer, so that memory and waiting stay bounded however many clients there are; the next one is turned
 * away before its body is read.
 */
export class Admission {
  readonly #limit: number;
  #inHand = 0;
  /** How long requests took lately. A full house empties in about that time. */
  #secondsEach = 1;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get inHand(): number {
    return this.#inHand;
  }

  async hold<T>(work: () => Promise<T>): Promise<T> {
    if (this.#inHand >= this.#limit) {
      throw retryLater('overloaded', `${this.#limit} clips are in hand already.`, this.#secondsEach);
    }
    this.#inHand++;
    const start = performance.now();
    try {
      return await work();
    } finally {
      this.#inHand--;
      this.#secondsEach += 0.1 * ((performance.now() - start) / 1000 - this.#secondsEach);
    }
  }
}
