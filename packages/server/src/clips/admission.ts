import { HeldBytes } from '../held-bytes.ts';
import { retryLater } from '../problems.ts';

interface AdmissionOptions {
  /** Recordings that have arrived and are not answered yet. */
  readonly maxWork: number;
  /** All bodies in memory together; see `HeldBytes`. */
  readonly maxBytes: number;
  /** Maximum expected wait for a thread. With the time to send a body, responses stay under five seconds. */
  readonly maxWaitMs: number;
  /** The expected wait of a request behind this many others, at the current speed. */
  readonly expectedWaitMs: (requests: number) => number;
}

/** What an in-flight request has reserved. */
export interface Reservation {
  /** For a body of unknown length: it now has this many bytes. Throws if they do not fit. */
  grow(bytes: number): void;
  /** The body is complete and counts as work from now on. Throws if there is too much. */
  arrived(): void;
}

/** An owner that has work in flight may take this part of the limits; the rest is for owners that have none. */
const SHARE_OF_A_BUSY_OWNER = 0.75;

interface Usage {
  requests: number;
  work: number;
}

/**
 * Admission control for short recordings. A body that is still arriving costs memory alone, so slow connections keep nobody
 * out; a body that has arrived is work for the threads. Both are bounded in total and for each owner. A request is refused
 * before its body is read when there is no room already.
 */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly held: HeldBytes;
  readonly #total: Usage = { requests: 0, work: 0 };
  readonly #owners = new Map<string, Usage>();

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.held = new HeldBytes(options.maxBytes);
  }

  get inFlight(): number {
    return this.#total.requests;
  }

  async run<T>(
    owner: string,
    announced: number | undefined,
    work: (reservation: Reservation) => Promise<T>,
  ): Promise<T> {
    const own = this.#owners.get(owner) ?? { requests: 0, work: 0 };
    this.#requireWork(own);
    const body = this.held.hold(owner);
    let received = 0;
    const grow = (bytes: number): void => {
      if (bytes <= received) return;
      if (!body.resize(bytes)) throw busy(this.#options.expectedWaitMs(this.#total.work));
      received = bytes;
    };
    grow(announced ?? 0);
    this.#owners.set(owner, own);
    let isWork = false;
    const arrived = (): void => {
      this.#requireWork(own);
      isWork = true;
      for (const usage of [this.#total, own]) usage.work++;
    };
    for (const usage of [this.#total, own]) usage.requests++;
    try {
      return await work({ grow, arrived });
    } finally {
      body.release();
      for (const usage of [this.#total, own]) {
        usage.requests--;
        if (isWork) usage.work--;
      }
      if (own.requests === 0) this.#owners.delete(owner);
    }
  }

  #requireWork(own: Usage): void {
    const { maxWork, maxWaitMs, expectedWaitMs } = this.#options;
    const share = own.work > 0 ? SHARE_OF_A_BUSY_OWNER : 1;
    const waitMs = expectedWaitMs(this.#total.work);
    if (this.#total.work >= maxWork * share || waitMs > maxWaitMs * share) throw busy(waitMs);
  }
}

function busy(waitMs: number) {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  const detail = `The server is busy. Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`;
  return retryLater('overloaded', detail, seconds);
}
