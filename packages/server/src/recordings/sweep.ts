import type { FastifyBaseLogger } from 'fastify';
import type { BlobStore } from '../stores/blobs.ts';
import type { RequestStore } from '../stores/contracts.ts';

const SWEEP_EVERY_MS = 60_000;
/** Timers are not exact: a turn that comes a little early still counts. */
const TURN_TOLERANCE_MS = 5_000;

interface SweepOptions {
  readonly requests: RequestStore;
  readonly blobs: BlobStore;
  readonly logger: FastifyBaseLogger;
  /** A blob that is in no record is either about to be or was left by a crash: by this age it is the latter. */
  readonly orphanAfterMs: number;
  /** What else has its time, such as copies of older databases. */
  readonly also?: () => Promise<void>;
  /** Is it this process that sweeps now? With several, one does it for all of them. */
  readonly takeTurn?: ((everyMs: number) => Promise<boolean>) | undefined;
  readonly now?: () => number;
}

/** Erases what is past its time and the audio that a crash left behind, at the start and every minute. */
export class Sweep {
  readonly #options: SweepOptions;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(options: SweepOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer ??= setInterval(() => this.#runSafely(), SWEEP_EVERY_MS).unref();
    this.#runSafely();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
  }

  async run(): Promise<void> {
    const { requests, blobs, also } = this.#options;
    await requests.expire();
    const groups = await blobs.groups();
    const needed = new Set(await requests.needingBlobs(groups));
    for (const group of groups) {
      if (needed.has(group)) {
        // Where senders put the parts themselves, nothing is recorded before the upload is complete.
        if (blobs.arrived === undefined) await this.#eraseOrphans(group);
      } else {
        await blobs.eraseGroup(group);
        await requests.deleteParts(group);
      }
    }
    await also?.();
  }

  #runSafely(): void {
    this.#running = this.#running
      .then(() => this.#options.takeTurn?.(SWEEP_EVERY_MS - TURN_TOLERANCE_MS))
      .then((ours = true) => (ours ? this.run() : undefined))
      .catch((error: unknown) =>
        this.#options.logger.warn({ err: error }, 'the sweep failed; it is tried again'),
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
