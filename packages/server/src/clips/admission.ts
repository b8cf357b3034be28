import { retryLater } from '../problems.ts';

interface AdmissionOptions {
  /** Recordings that have arrived and are not answered yet. */
  readonly maxWork: number;
  /** All bodies in memory together. */
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

/** A key that has work in flight may take this part of the limits; the rest is for keys that have none. */
const SHARE_OF_A_BUSY_KEY = 0.75;

interface Usage {
  requests: number;
  work: number;
  bytes: number;
}

/**
 * Admission control for short recordings. A body that is still arriving costs memory alone, so slow connections keep nobody
 * out; a body that has arrived is work for the threads. Both are bounded in total and for each key: a key may hold as many
 * bytes as are free, so any number of keys leave room for one more. A request is refused before its body is read when
 * there is no room already.
 */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #total: Usage = { requests: 0, work: 0, bytes: 0 };
  readonly #owners = new Map<string, Usage>();

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  get inFlight(): number {
    return this.#total.requests;
  }

  async run<T>(
    owner: string,
    announced: number | undefined,
    work: (reservation: Reservation) => Promise<T>,
  ): Promise<T> {
    const own = this.#owners.get(owner) ?? { requests: 0, work: 0, bytes: 0 };
    const taken: Usage = { requests: 1, work: 0, bytes: 0 };
    this.#requireWork(own);
    this.#requireBytes(own, announced ?? 0);
    this.#owners.set(owner, own);
    const add = (usage: Partial<Usage>, sign: 1 | -1 = 1): void => {
      for (const counter of [this.#total, own]) {
        counter.requests += sign * (usage.requests ?? 0);
        counter.work += sign * (usage.work ?? 0);
        counter.bytes += sign * (usage.bytes ?? 0);
      }
    };
    const grow = (bytes: number): void => {
      const more = bytes - taken.bytes;
      if (more <= 0) return;
      this.#requireBytes(own, more);
      add({ bytes: more });
      taken.bytes = bytes;
    };
    const arrived = (): void => {
      this.#requireWork(own);
      add({ work: 1 });
      taken.work = 1;
    };
    add(taken);
    try {
      grow(announced ?? 0);
      return await work({ grow, arrived });
    } finally {
      add(taken, -1);
      if (own.requests === 0) this.#owners.delete(owner);
    }
  }

  #requireWork(own: Usage): void {
    const { maxWork, maxWaitMs, expectedWaitMs } = this.#options;
    const share = own.work > 0 ? SHARE_OF_A_BUSY_KEY : 1;
    const waitMs = expectedWaitMs(this.#total.work);
    if (this.#total.work >= maxWork * share || waitMs > maxWaitMs * share) throw busy(waitMs);
  }

  #requireBytes(own: Usage, bytes: number): void {
    const free = this.#options.maxBytes - this.#total.bytes;
    if (own.bytes + bytes > free) throw busy(this.#options.expectedWaitMs(this.#total.work));
  }
}

function busy(waitMs: number) {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  const detail = `The server is busy. Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`;
  return retryLater('overloaded', detail, seconds);
}
