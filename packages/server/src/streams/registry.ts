import { STREAM_LIMITS } from '@undertone/contract';
import type { Metrics } from '../operators/metrics.ts';
import { retryLater } from '../problems.ts';

export interface StreamTimes {
  /** A stream that brings nothing, or takes no answer, for so long is closed. */
  readonly idleMs: number;
  /** So long may a complete window wait for its answer. */
  readonly lagMs: number;
  /** So long has a client to close its side. */
  readonly closeMs: number;
}

const TIMES: StreamTimes = {
  idleMs: STREAM_LIMITS.idleSeconds * 1_000,
  lagMs: STREAM_LIMITS.lagSeconds * 1_000,
  closeMs: 2_000,
};

/** A stream as those see it who stop the server. */
export interface OpenStream {
  goAway(): void;
  readonly closed: Promise<void>;
}

interface StreamsOptions {
  /** Open streams for each key; 0 is no limit. */
  readonly limit: number;
  readonly metrics: Metrics;
  readonly times?: Partial<StreamTimes>;
}

/** All streams that are open: how many each key has, and whom to tell when the server stops. */
export class Streams {
  readonly times: StreamTimes;
  readonly #limit: number;
  readonly #places = new Map<string, number>();
  readonly #open = new Set<OpenStream>();
  #stopping = false;

  constructor({ limit, metrics, times }: StreamsOptions) {
    this.#limit = limit;
    this.times = { ...TIMES, ...times };
    metrics.watchStreams(() => this.#open.size);
  }

  /** A place among the streams of a key, until the returned function is called. Throws the problem where there is none. */
  takePlace(owner: string): () => void {
    if (this.#stopping) throw retryLater('overloaded', 'This server is stopping. Try again in a second.', 1);
    const taken = this.count(owner);
    if (this.#limit > 0 && taken >= this.#limit) {
      const detail = `This key has ${taken} open streams, which is the limit. Close one of them first.`;
      throw retryLater('rate_limited', detail, 1);
    }
    this.#places.set(owner, taken + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const left = this.count(owner) - 1;
      if (left > 0) this.#places.set(owner, left);
      else this.#places.delete(owner);
    };
  }

  /** How many a key has open. */
  count(owner: string): number {
    return this.#places.get(owner) ?? 0;
  }

  add(stream: OpenStream): void {
    this.#open.add(stream);
    void stream.closed.then(() => this.#open.delete(stream));
    if (this.#stopping) stream.goAway();
  }

  /** No new streams; the open ones are told, and closed when they do not close themselves. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const stream of this.#open) stream.goAway();
    await Promise.all([...this.#open].map(({ closed }) => closed));
  }
}
