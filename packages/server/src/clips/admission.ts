import { retryLater } from '../problems.ts';

interface AdmissionOptions {
  readonly maxInFlight: number;
  /** All bodies in memory together. */
  readonly maxBytes: number;
  /** Maximum expected wait for a thread. With the time to send a body, responses stay under five seconds. */
  readonly maxWaitMs: number;
  /** The expected wait of a request behind this many others, at the current speed. */
  readonly expectedWaitMs: (requests: number) => number;
}

/** Memory that an in-flight request has reserved. */
export interface Reservation {
  /** For a body of unknown length: it now has this many bytes. Throws if they do not fit. */
  grow(bytes: number): void;
}

/**
 * Admission control for short recordings. Limits the requests in flight (from the first byte of the body to the response),
 * the bytes they hold, and the expected wait. A request is refused before its body is read, so memory and latency stay
 * bounded for any number of clients.
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
