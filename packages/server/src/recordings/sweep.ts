import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';
import type { BlobStore } from '../stores/blobs.ts';
import type { ErasableBlobs, RequestStore } from '../stores/contracts.ts';
import { forEachConcurrently } from './concurrently.ts';
import { UploadLimiter } from './limit-uploads.ts';
import { eraseOrphans } from './orphans.ts';

const SWEEP_EVERY_MS = 60_000;
const ORPHANS_EVERY_MS = 24 * 60 * 60_000;
/** Each process asks for its turn this often: the one whose turn it was may be gone. */
const ASK_FOR_ORPHANS_MS = 60 * 60_000;
/** Timers are not exact: a turn may be taken this much early. */
const TURN_TOLERANCE_MS = 5_000;
/** Between two pages of the search for orphans, so that it does not slow down other calls. */
const PAGE_PAUSE_MS = 1_000;
const REQUESTS_PER_BATCH = 200;

/** True for one process in each period: it runs the task for all of them. */
export type TakeTurn = (task: string, everyMs: number) => Promise<boolean>;

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
  readonly takeTurn: TakeTurn;
  readonly pagePauseMs?: number;
  readonly now?: () => number;
}

/**
 * Erases expired requests, and the audio of those that are over, at the start and every minute. It goes by the rows of the
 * requests, and lists blobs only of those. Once a day it also searches all blobs for orphans, slowly.
 */
export class Sweep {
  readonly #options: SweepOptions;
  readonly #limiter: UploadLimiter;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #stopping = new AbortController();
  #sweeping: Promise<void> = Promise.resolve();
  #searching: Promise<void> = Promise.resolve();
  /** In this run. */
  #erased = 0;
  #expired = 0;

  constructor(options: SweepOptions) {
    this.#options = options;
    this.#limiter = new UploadLimiter(options);
  }

  start(): void {
    if (this.#timers.length > 0) return;
    const sweep = () => {
      this.#sweeping = this.#sweeping.then(() => this.#inTurn('sweep', SWEEP_EVERY_MS, () => this.run()));
    };
    const search = () => {
      const work = () => this.eraseOrphans();
      this.#searching = this.#searching.then(() => this.#inTurn('orphans', ORPHANS_EVERY_MS, work));
    };
    this.#timers.push(setInterval(sweep, SWEEP_EVERY_MS).unref());
    this.#timers.push(setInterval(search, ASK_FOR_ORPHANS_MS).unref());
    sweep();
    search();
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#stopping.abort();
    await Promise.all([this.#sweeping, this.#searching]);
  }

  /** A step that fails leaves the others to be done: audio is erased even when no row can be. */
  async run(): Promise<void> {
    const steps = [
      () => this.#expireRequests(),
      () => this.#eraseBlobs(),
      () => this.#limiter.run(this.#stopping.signal),
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

  /** All blobs, page by page: those that no request needs are erased. */
  async eraseOrphans(): Promise<void> {
    const { logger, pagePauseMs = PAGE_PAUSE_MS, now = Date.now } = this.#options;
    const { signal } = this.#stopping;
    const start = performance.now();
    const pause = () => sleep(pagePauseMs, undefined, { signal, ref: false }).catch(() => undefined);
    const found = await eraseOrphans({ ...this.#options, now, signal, pause });
    logger.info({ ...found, ms: Math.round(performance.now() - start) }, 'searched for orphaned recordings');
  }

  async #expireRequests(): Promise<void> {
    const { requests, logger, onUnprocessed } = this.#options;
    let unprocessed = 0;
    for (let more = true; more && !this.#stopping.signal.aborted; ) {
      const batch = await requests.expire();
      this.#expired += batch.requests;
      unprocessed += batch.unprocessed;
      onUnprocessed?.(batch.unprocessed);
      more = batch.more;
    }
    if (unprocessed > 0)
      logger.warn({ requests: unprocessed }, 'requests expired before a worker had processed them');
  }

  async #eraseBlobs(): Promise<void> {
    const { requests, blobs } = this.#options;
    const failures: unknown[] = [];
    let after: ErasableBlobs | undefined;
    for (let more = true; more && !this.#stopping.signal.aborted; ) {
      const due = await requests.blobsToErase({ limit: REQUESTS_PER_BATCH, after });
      const erased: string[] = [];
      const failed = await forEachConcurrently(due, async ({ id }) => {
        await blobs.eraseGroup(id);
        erased.push(id);
      });
      failures.push(...failed);
      this.#erased += erased.length;
      if (erased.length > 0)
        await requests.noteErased(erased).catch((error: unknown) => failures.push(error));
      after = due.at(-1);
      // If none could be erased, the blob store is unavailable: each further one would wait for it.
      more = due.length === REQUESTS_PER_BATCH && erased.length > 0;
    }
    if (failures.length > 0) throw new AggregateError(failures, 'Some recordings could not be erased');
  }

  async #inTurn(task: string, everyMs: number, work: () => Promise<void>): Promise<void> {
    const { takeTurn, logger } = this.#options;
    try {
      if (await takeTurn(task, everyMs - TURN_TOLERANCE_MS)) await work();
    } catch (error) {
      logger.warn({ err: error, task }, 'the sweep failed; trying again at its next turn');
    }
  }
}

/** The turns of a process that has its stores to itself. */
export function takeLocalTurns(): TakeTurn {
  const begun = new Map<string, number>();
  return async (task, everyMs) => {
    const now = performance.now();
    if (now - (begun.get(task) ?? Number.NEGATIVE_INFINITY) < everyMs) return false;
    begun.set(task, now);
    return true;
  };
}
