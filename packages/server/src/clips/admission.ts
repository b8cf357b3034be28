import { retryLater } from '../problems.ts';

interface AdmissionOptions {
  readonly maxInFlight: number;
  /** Of all bodies that are in memory together. */
  readonly maxBytes: number;
  /** Nobody is let in who would wait longer for a thread: with the sending of a body, no answer is to take five seconds. */
  readonly maxWaitMs: number;
  /** How long a request waits that comes after so many others, at the pace of this machine at this moment. */
  readonly expectedWaitMs: (requests: number) => number;
}

/** What a request has reserved while it is in flight. */
export interface Reservation {
  /** A body of unknown length has grown to this many bytes. Throws when there is no room for them. */
  grow(bytes: number): void;
}

/**
 * Admission control of the discrete interface, all of it: how many requests are in flight, from the first byte of the
 * body to the answer, how many bytes they hold, and how long one more would wait. Whoever is not admitted is told before
 * the body is read, so memory and waiting stay bounded however many clients there are.
 */
export class Admission {
  readonly #options: AdmissionOptions;
  #inFlight = 0;
  #bytes = 0;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  async run<T>(announced: number | undefined, work: (reservation: Reservation) => Promise<T>): Promise<T> {
    const { maxInFlight, maxWaitMs, expectedWaitMs } = this.#options;
    const waitMs = expectedWaitMs(this.#inFlight);
    let reserved = announced ?? 0;
    if (this.#inFlight >= maxInFlight || waitMs > maxWaitMs || !this.#fits(reserved)) throw busy(waitMs);
    this.#inFlight++;
    this.#bytes += reserved;
    const grow = (bytes: number): void => {
      if (bytes <= reserved) return;
      if (!this.#fits(bytes - reserved)) throw busy(waitMs);
      this.#bytes += bytes - reserved;
      reserved = bytes;
    };
    try {
      return await work({ grow });
    } finally {
      this.#inFlight--;
      this.#bytes -= reserved;
    }
  }

  #fits(bytes: number): boolean {
    return this.#bytes + bytes <= this.#options.maxBytes;
  }
}

function busy(waitMs: number) {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  const detail = `The server is busy. Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`;
  return retryLater('overloaded', detail, seconds);
}
