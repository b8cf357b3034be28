import { retryLater } from '../problems.ts';

/** Nobody is let in who would wait longer: with the sending of a body, no answer is to take five seconds. */
const LONGEST_WAIT_SECONDS = 2;

/**
 * The door of the discrete interface. Only so many requests are in hand at once, from the first byte of a body
 * to the answer, so that memory and waiting stay bounded however many clients there are; the next one is turned
 * away before its body is read. How many depends on how fast clips are heard on this machine at this moment.
 */
export class Admission {
  readonly #limit: number;
  #inHand = 0;
  /** From one heard clip to the next while others waited: what each place in the row costs. */
  #secondsApart = 0;
  #lastHeardAt = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get inHand(): number {
    return this.#inHand;
  }

  async hold<T>(work: () => Promise<T>): Promise<T> {
    const wait = this.#inHand * this.#secondsApart;
    if (this.#inHand >= this.#limit || wait > LONGEST_WAIT_SECONDS) {
      throw retryLater('overloaded', `${this.#inHand} clips are in hand already.`, wait);
    }
    this.#inHand++;
    try {
      return await work();
    } finally {
      this.#inHand--;
    }
  }

  /** A clip was heard, which was with the classifier for so long. */
  heard(milliseconds: number, now = performance.now()): void {
    // One that came after the last was heard says nothing: the threads may have had a rest in between.
    if (now - milliseconds < this.#lastHeardAt) {
      this.#secondsApart += 0.1 * ((now - this.#lastHeardAt) / 1000 - this.#secondsApart);
    }
    this.#lastHeardAt = now;
  }
}
