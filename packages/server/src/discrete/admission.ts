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
  readonly #threads: number;
  #inHand = 0;
  /** How long a thread works for a request, of late: for one whose body is no clip, not at all. */
  #threadSeconds = 0;

  constructor(limit: number, threads: number) {
    this.#limit = limit;
    this.#threads = threads;
  }

  get inHand(): number {
    return this.#inHand;
  }

  /** Does the work if there is a place for it. The work tells how long its clip took a thread, if it came so far. */
  async hold<T>(work: (heard: (threadMs: number) => void) => Promise<T>): Promise<T> {
    const wait = (this.#inHand * this.#threadSeconds) / this.#threads;
    if (this.#inHand >= this.#limit || wait > LONGEST_WAIT_SECONDS) {
      throw retryLater('overloaded', `${this.#inHand} clips are in hand already.`, wait);
    }
    this.#inHand++;
    let threadMs = 0;
    try {
      return await work((ms) => {
        threadMs = ms;
      });
    } finally {
      this.#inHand--;
      // Slowly, so that one odd clip, such as the first one on a cold machine, closes no door.
      this.#threadSeconds += 0.1 * (threadMs / 1000 - this.#threadSeconds);
    }
  }
}
