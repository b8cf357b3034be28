import type { HeldBytes } from '../held-bytes.ts';
import type { Metrics } from '../operators/metrics.ts';
import { retryLater } from '../problems.ts';
import type { Caller } from '../stores/contracts.ts';
import { STREAM_TIMES, type StreamSession, type StreamTimes } from './session.ts';

interface StreamsOptions {
  /** Concurrent streams of this process; 0 is no limit. */
  readonly totalLimit: number;
  /** The expected wait of a window for a thread, at the current speed. */
  readonly expectedWaitMs: () => number;
  readonly metrics: Metrics;
  /** Memory for audio that waits. */
  readonly held: HeldBytes;
  readonly times?: Partial<StreamTimes>;
}

/** A process that is this late refuses new streams, so that those it has are not closed. */
const MAX_WAIT_MS = 1_000;
/** Random, so that streams that were refused together do not come back together. */
const RETRY_SECONDS = { min: 3, max: 8 };

/** All open streams: how many each key has, and which to close at shutdown. */
export class Streams {
  readonly times: StreamTimes;
  readonly held: HeldBytes;
  readonly #totalLimit: number;
  readonly #expectedWaitMs: () => number;
  /** Reserved slots by key. A slot is reserved before the upgrade, so there may be more of them than open streams. */
  readonly #slots = new Map<string, { readonly owner: string; count: number }>();
  readonly #open = new Set<StreamSession>();
  #total = 0;
  #stopping = false;

  constructor({ totalLimit, expectedWaitMs, metrics, held, times }: StreamsOptions) {
    this.held = held;
    this.#totalLimit = totalLimit;
    this.#expectedWaitMs = expectedWaitMs;
    this.times = { ...STREAM_TIMES, ...times };
    metrics.watchStreams(() => this.#open.size);
  }

  /** Reserves a slot until the returned function is called. Throws the problem when the key or the process has no free slot. */
  reserveSlot({
    id,
    owner,
    limits: { streams: limit },
  }: Pick<Caller, 'id' | 'owner' | 'limits'>): () => void {
    if (this.#stopping) throw retryLater('overloaded', 'This server is stopping. Try again in a second.', 1);
    this.#requireCapacity();
    const slots = this.#slots.get(id) ?? { owner, count: 0 };
    const used = slots.count;
    if (limit > 0 && used >= limit) {
      const detail = `This key has ${used} open streams, which is the limit. Close one of them first.`;
      throw retryLater('rate_limited', detail, 1, { figures: { limit, used } });
    }
    slots.count++;
    this.#slots.set(id, slots);
    this.#total++;
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.#total--;
      if (--slots.count === 0) this.#slots.delete(id);
    };
  }

  #requireCapacity(): void {
    const full = this.#totalLimit > 0 && this.#total >= this.#totalLimit;
    if (!full && this.#expectedWaitMs() <= MAX_WAIT_MS) return;
    const { min, max } = RETRY_SECONDS;
    const seconds = min + Math.floor(Math.random() * (max - min + 1));
    const detail = `The server is busy and takes no more streams. Try again in ${seconds} seconds.`;
    throw retryLater('overloaded', detail, seconds);
  }

  /** Streams of a key. */
  count(keyId: string): number {
    return this.#slots.get(keyId)?.count ?? 0;
  }

  /** Metrics. */
  byOwner(): Map<string, number> {
    const owners = new Map<string, number>();
    for (const { owner, count } of this.#slots.values()) owners.set(owner, (owners.get(owner) ?? 0) + count);
    return owners;
  }

  add(stream: StreamSession): void {
    this.#open.add(stream);
    void stream.closed.then(() => this.#open.delete(stream));
    if (this.#stopping) stream.closeForShutdown();
  }

  /** Refuses new streams and closes the open ones. Resolves when all are closed. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const stream of this.#open) stream.closeForShutdown();
    await Promise.all([...this.#open].map(({ closed }) => closed));
  }
}
