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
  /** How long a thread works on a clip, of late. */
  #clipSeconds = 0;

  constructor(limit: number, threads: number) {
    this.#limit = limit;
    this.#threads = threads;
  }

  get inHand(): number {
    return this.#inHand;
  }

  async hold<T>(work: () => Promise<T>): Promise<T> {
    const wait = (this.#inHand * this.#clipSeconds) / this.#threads;
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

  /** A clip was heard, and took a thread so long. */
  heard(threadMs: number): void {
    const seconds = threadMs / 1000;
    // The first one is all that is known; later ones move the mean slowly, so that one odd clip closes no door.
    this.#clipSeconds += (this.#clipSeconds === 0 ? 1 : 0.1) * (seconds - this.#clipSeconds);
  }
}
