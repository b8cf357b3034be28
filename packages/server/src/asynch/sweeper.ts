import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { FastifyBaseLogger } from 'fastify';
import type { Stores } from './stores/stores.ts';
import { PART_PATIENCE } from './uploads/part-upload.ts';

const SWEEP_EVERY_MS = 60_000;
/** How long an expired request is still answered with 410 rather than 404. */
export const TOMBSTONE_MS = 7 * 24 * 60 * 60_000;
/** A blob that is in no record is either about to be or was left by a crash: by this age it is the latter. */
const ORPHAN_AFTER_MS = PART_PATIENCE.totalMs + 60_000;

interface SweeperOptions {
  readonly stores: Stores;
  readonly scratchDir: string;
  readonly logger: FastifyBaseLogger;
  readonly now?: () => number;
}

/** Erases what is past its time and what a crash left behind, at the start and every minute. */
export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #now: () => number;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  start(): void {
    this.#timer ??= setInterval(() => this.sweepQuietly(), SWEEP_EVERY_MS).unref();
    this.sweepQuietly();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
  }

  sweepQuietly(): void {
    this.#running = this.#running
      .then(() => this.sweep())
      .catch((error: unknown) =>
        this.#options.logger.error({ err: error }, 'the sweep failed; it is tried again'),
      );
  }

  async sweep(): Promise<void> {
    const { requests } = this.#options.stores;
    for (const id of await requests.expire()) await this.#erase(id);
    await this.#queueForgotten();
    await this.#eraseOrphans();
    await this.#eraseScratch();
    await requests.forgetExpired(this.#now() - TOMBSTONE_MS);
  }

  /** A crash between the completing of an upload and its job. */
  async #queueForgotten(): Promise<void> {
    const { requests, queue } = this.#options.stores;
    for (const id of await requests.inState('queued')) await queue.add(id);
  }

  async #eraseOrphans(): Promise<void> {
    const { requests, blobs } = this.#options.stores;
    for (const group of await blobs.groups()) {
      const request = await requests.find(group);
      const needed = request !== null && ['uploading', 'queued', 'processing'].includes(request.state);
      if (needed) await this.#eraseUnrecorded(group);
      else await this.#erase(group);
    }
  }

  async #eraseUnrecorded(group: string): Promise<void> {
    const { requests, blobs } = this.#options.stores;
    const old = (await blobs.list(group)).filter(
      ({ modifiedAt }) => modifiedAt < this.#now() - ORPHAN_AFTER_MS,
    );
    if (old.length === 0) return;
    const recorded = new Set((await requests.parts(group)).map(({ blob }) => blob));
    for (const { name } of old) if (!recorded.has(name)) await blobs.erase(group, name);
  }

  async #erase(id: string): Promise<void> {
    const { requests, blobs, queue } = this.#options.stores;
    await blobs.eraseGroup(id);
    await requests.forgetParts(id);
    await queue.remove(id);
  }

  /** Recordings that were put together for a job that is no more. */
  async #eraseScratch(): Promise<void> {
    const { scratchDir, stores } = this.#options;
    const names = await readdir(scratchDir).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    for (const name of names) {
      const request = await stores.requests.find(name);
      if (request?.state !== 'processing') await rm(join(scratchDir, name), { force: true });
    }
  }
}
