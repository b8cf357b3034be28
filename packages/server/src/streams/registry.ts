import type { HeldBytes } from '../held-bytes.ts';
import type { Metrics } from '../operators/metrics.ts';
import { retryLater } from '../problems.ts';
import type { Caller } from '../stores/contracts.ts';
import { STREAM_TIMES, type StreamSession, type StreamTimes } from './session.ts';

interface StreamsOptions {
  readonly metrics: Metrics;
  /** Memory for audio that waits. */
  readonly held: HeldBytes;
  readonly times?: Partial<StreamTimes>;
}

/** All open streams: how many each key has, and which to close at shutdown. */
export class Streams {
  readonly times: StreamTimes;
  readonly held: HeldBytes;
  /** Reserved slots by key. A slot is reserved before the upgrade, so there may be more of them than open streams. */
  readonly #slots = new Map<string, { readonly owner: string; count: number }>();
  readonly #open = new Set<StreamSession>();
  #stopping = false;

  constructor({ metrics, held, times }: StreamsOptions) {
    this.held = held;
    this.times = { ...STREAM_TIMES, ...times };
    metrics.watchStreams(() => this.#open.size);
  }

  /** Reserves a slot until the returned function is called. Throws the problem when the key has no free slot. */
  reserveSlot({
    id,
    owner,
    limits: { streams: limit },
  }: Pick<Caller, 'id' | 'owner' | 'limits'>): () => void {
    if (this.#stopping) throw retryLater('overloaded', 'This server is stopping. Try again in a second.', 1);
    const slots = this.#slots.get(id) ?? { owner, count: 0 };
    const used = slots.count;
    if (limit > 0 && used >= limit) {
      const detail = `This key has ${used} open streams, which is the limit. Close one of them first.`;
      throw retryLater('rate_limited', detail, 1, { figures: { limit, used } });
    }
    slots.count++;
    this.#slots.set(id, slots);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      if (--slots.count === 0) this.#slots.delete(id);
    };
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
