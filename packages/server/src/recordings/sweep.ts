import type { FastifyBaseLogger } from 'fastify';
import type { BlobStore } from '../stores/blobs.ts';
import type { RequestStore } from '../stores/contracts.ts';

const SWEEP_EVERY_MS = 60_000;
/** Timers are not exact: a turn may be taken this much early. */
const TURN_TOLERANCE_MS = 5_000;

interface SweepOptions {
  readonly requests: RequestStore;
  readonly blobs: BlobStore;
  readonly logger: FastifyBaseLogger;
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

  constructor(options: SweepOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer ??= setInterval(() => this.#runInTurn(), SWEEP_EVERY_MS).unref();
    this.#runInTurn();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
  }

  async run(): Promise<void> {
    const { requests, blobs, eraseOldCopies } = this.#options;
    await requests.expire();
    const groups = await blobs.groups();
    const needed = new Set(await requests.needingBlobs(groups));
    for (const group of groups) {
      if (needed.has(group)) {
        // Parts that clients send straight to the blob store are not recorded before the upload is complete.
        if (blobs.arrived === undefined) await this.#eraseOrphans(group);
      } else {
        await blobs.eraseGroup(group);
        await requests.deleteParts(group);
      }
    }
    await eraseOldCopies?.();
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
    const old = (await blobs.list(group)).filter(({ modifiedAt }) => modifiedAt < now() - orphanAfterMs);
    if (old.length === 0) return;
    const recorded = new Set((await requests.parts(group)).map(({ blob }) => blob));
    for (const { name } of old) if (!recorded.has(name)) await blobs.erase(group, name);
  }
}
