import type { FastifyBaseLogger } from 'fastify';
import type { BlobStore } from '../stores/blobs.ts';
import type { RequestStore } from '../stores/contracts.ts';
import { limitUploads } from './limit-uploads.ts';

const SWEEP_EVERY_MS = 60_000;
/** Timers are not exact: a turn may be taken this much early. */
const TURN_TOLERANCE_MS = 5_000;
/** Looked up in one statement. */
const GROUPS_AT_ONCE = 500;

interface SweepOptions {
  readonly requests: RequestStore;
  readonly blobs: BlobStore;
  readonly logger: FastifyBaseLogger;
  /** Counts requests that expired while they waited for a worker. */
  readonly onUnprocessed?: (requests: number) => void;
  /** Bytes that an owner may have stored, if it has no limit of its own; 0 is no limit. */
  readonly storageLimit: number;
  /** Called after each run. */
  readonly onSwept?: (succeeded: boolean) => void;
  /** A blob without a record may still be arriving. At this age it is an orphan, left by a crash. */
  readonly orphanAfterMs: number;
  /** Erases expired copies of an embedded database, which upgrades leave. */
  readonly eraseOldCopies: (() => Promise<void>) | undefined;
  /** Elects the process that sweeps now, where several share a database. */
  readonly takeTurn: ((everyMs: number) => Promise<boolean>) | undefined;
  readonly now?: () => number;
}

/** Erases expired requests, and audio that a crash left behind, at the start and every minute. */
export class Sweep {
  readonly #options: SweepOptions;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;
  /** Groups erased in this run. */
  #erased = 0;
  #expired = 0;

  constructor(options: SweepOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer ??= setInterval(() => this.#runInTurn(), SWEEP_EVERY_MS).unref();
    this.#runInTurn();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopped = true;
    await this.#running;
  }

  /** A step that fails leaves the others to be done: audio is erased even when no row can be. */
  async run(): Promise<void> {
    const steps = [
      () => this.#expireRequests(),
      () => this.#sweepBlobs(),
      async () => this.#options.eraseOldCopies?.(),
    ];
    const failures: unknown[] = [];
    const start = performance.now();
    this.#erased = 0;
    this.#expired = 0;
    for (const step of steps) await step().catch((error: unknown) => failures.push(error));
    const line = {
      expired: this.#expired,
      erased: this.#erased,
      failures: failures.length,
      ms: Math.round(performance.now() - start),
    };
    this.#options.logger[this.#expired + this.#erased > 0 ? 'info' : 'debug'](line, 'swept');
    this.#options.onSwept?.(failures.length === 0);
    if (failures.length > 1) throw new AggregateError(failures, 'Several steps of the sweep failed');
    if (failures.length > 0) throw failures[0];
  }

  async #expireRequests(): Promise<void> {
    const { requests, logger, onUnprocessed } = this.#options;
    let unprocessed = 0;
    for (let more = true; more && !this.#stopped; ) {
      const batch = await requests.expire();
      this.#expired += batch.requests;
      unprocessed += batch.unprocessed;
      onUnprocessed?.(batch.unprocessed);
      more = batch.more;
    }
    if (unprocessed > 0)
      logger.warn({ requests: unprocessed }, 'requests expired before a worker had processed them');
  }

  async #sweepBlobs(): Promise<void> {
    const { requests, blobs } = this.#options;
    // Sizes are known only where clients upload straight to the blob store.
    const sizes = await blobs.groupSizes?.();
    const groups = sizes === undefined ? await blobs.groups() : [...sizes.keys()];
    const failures: unknown[] = [];
    for (let at = 0; at < groups.length && !this.#stopped; at += GROUPS_AT_ONCE) {
      const some = groups.slice(at, at + GROUPS_AT_ONCE);
      const needed = new Set(await requests.needingBlobs(some));
      if (sizes !== undefined) {
        const bytes = new Map([...needed].map((group) => [group, sizes.get(group) ?? 0]));
        await limitUploads(bytes, this.#options).catch((error: unknown) => failures.push(error));
      }
      for (const group of some) {
        const done = needed.has(group) ? this.#eraseOrphans(group) : this.#eraseGroup(group);
        await done.catch((error: unknown) => failures.push(error));
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, 'Some recordings could not be erased');
  }

  async #eraseGroup(group: string): Promise<void> {
    await this.#options.blobs.eraseGroup(group);
    this.#erased++;
    await this.#options.requests.deleteParts(group);
  }

  #runInTurn(): void {
    this.#running = this.#running
      .then(() => this.#options.takeTurn?.(SWEEP_EVERY_MS - TURN_TOLERANCE_MS))
      .then((ours = true) => (ours ? this.run() : undefined))
      .catch((error: unknown) =>
        this.#options.logger.warn({ err: error }, 'the sweep failed; trying again in a minute'),
      );
  }

  async #eraseOrphans(group: string): Promise<void> {
    const { requests, blobs, orphanAfterMs, now = Date.now } = this.#options;
    // Parts that clients send straight to the blob store are not recorded before the upload is complete.
    if (blobs.arrived !== undefined) return;
    const old = (await blobs.list(group)).filter(({ modifiedAt }) => modifiedAt < now() - orphanAfterMs);
    if (old.length === 0) return;
    const recorded = new Set((await requests.parts(group)).map(({ blob }) => blob));
    for (const { name } of old) if (!recorded.has(name)) await blobs.erase(group, name);
  }
}
