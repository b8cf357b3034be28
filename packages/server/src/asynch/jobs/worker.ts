import { setTimeout as sleep } from 'node:timers/promises';
import { AudioError } from '@undertone/audio';
import { type Classifier, ClosedError } from '@undertone/classifier';
import { ASYNCH_LIMITS, type AsynchResult, ERRORS } from '@undertone/contract';
import type { FastifyBaseLogger } from 'fastify';
import { storageTrouble } from '../../storage-trouble.ts';
import type { AsynchMetrics } from '../metrics.ts';
import type { Job } from '../stores/job-queue.ts';
import type { AsynchRequest, Failure, Outcome } from '../stores/request-store.ts';
import type { Stores } from '../stores/stores.ts';
import { processRecording } from './process.ts';
import { Recording } from './recording.ts';
import { watch } from './watch.ts';

export interface WorkerOptions {
  readonly stores: Stores;
  readonly classifier: Classifier;
  readonly metrics: AsynchMetrics;
  readonly logger: FastifyBaseLogger;
  readonly ffmpegPath: string | null;
  readonly scratchDir: string;
}

/** A lease that is not renewed for so long belongs to a dead worker. */
const LEASE_MS = 5_000;
/** How often an idle worker looks for jobs that nobody told it of. */
const LOOK_EVERY_MS = 500;
const TROUBLE_PAUSE_MS = 1_000;

/**
 * Takes one job after another. In words:
 *
 * - The result is written first, then the audio is erased, then the job is removed. A crash in between leaves a job
 *   whose request is finished; whoever claims it next only has the erasing left to do.
 * - A recording that cannot be used makes the request failed. Trouble of ours (a full disk, a locked database, a
 *   stop) gives the job back as if nothing had been; anything unforeseen gives it back as a death, and after the
 *   third death the request has failed.
 */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #stop = new AbortController();
  #wake = Promise.withResolvers<void>();
  #loop: Promise<void> | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** There is a job: look now. */
  wake(): void {
    this.#wake.resolve();
  }

  /** Gives back what it holds. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.wake();
    await this.#loop;
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      this.#wake = Promise.withResolvers();
      try {
        const job = await this.#claim();
        if (job === null) await this.#rest();
        else await this.#work(job);
      } catch (error) {
        this.#options.logger.error({ err: error }, 'a worker could not go on; it tries again');
        await this.#pause();
      }
    }
  }

  /** Until there may be work. */
  async #rest(): Promise<void> {
    const timer = new AbortController();
    const { signal } = timer;
    const time = sleep(LOOK_EVERY_MS, undefined, { signal, ref: false }).catch(() => undefined);
    await Promise.race([this.#wake.promise, time]);
    timer.abort();
  }

  /** After trouble that is not the recording's fault. */
  async #pause(): Promise<void> {
    await sleep(TROUBLE_PAUSE_MS, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }

  async #claim(): Promise<Job | null> {
    const { requests, queue } = this.#options.stores;
    for (const dead of await queue.releaseDead()) {
      const { requestId } = dead;
      this.#options.logger.warn(
        { asynch_request: requestId },
        'a worker died over this request; it is queued again',
      );
      await requests.giveBack(requestId, dead.lease);
    }
    return queue.claim(LEASE_MS);
  }

  async #work(job: Job): Promise<void> {
    const gone = new AbortController();
    try {
      await this.#attempt(job, gone);
    } catch (error) {
      await this.#insist(async () => {
        // Deleted, expired or another worker's by now: then the error only tells of that.
        const held =
          !gone.signal.aborted && (await this.#options.stores.requests.holds(job.requestId, job.lease));
        if (held) await this.#giveBack(job, error);
        else await this.#clearUnlessNeeded(job);
      });
      if (!gone.signal.aborted) await this.#pause();
    }
  }

  async #attempt(job: Job, gone: AbortController): Promise<void> {
    const { stores } = this.#options;
    const request = await stores.requests.find(job.requestId);
    if (request === null || !(await stores.requests.begin(job.requestId, job.lease))) {
      return this.#clearUnlessNeeded(job);
    }
    let progress = () => 0;
    const stopWatching = watch(job, stores, LEASE_MS, () => progress(), gone);
    try {
      const recording = await this.#open(request, AbortSignal.any([gone.signal, this.#stop.signal]));
      progress = () => recording.progress;
      const outcome =
        job.deaths >= ASYNCH_LIMITS.maxAttempts
          ? { failure: lostTooOften(job.deaths) }
          : await this.#process(request, recording);
      await this.#insist(() => this.#finish(job, outcome));
    } finally {
      stopWatching();
    }
  }

  async #open(request: AsynchRequest, signal: AbortSignal): Promise<Recording> {
    const { stores, ffmpegPath, scratchDir } = this.#options;
    const parts = await stores.requests.parts(request.id);
    return new Recording({
      blobs: stores.blobs,
      requestId: request.id,
      parts,
      scratchDir,
      ffmpegPath,
      signal,
    });
  }

  async #process(request: AsynchRequest, recording: Recording): Promise<Outcome> {
    const { classifier, metrics } = this.#options;
    const start = performance.now();
    try {
      const { timeline, seconds } = await processRecording(recording, request, classifier);
      metrics.observeJob((performance.now() - start) / 1000, seconds);
      const result: AsynchResult = { request_id: request.id, status: 'completed', emotions: timeline };
      return { result: JSON.stringify(result) };
    } catch (error) {
      if (error instanceof AudioError && error.code !== 'overloaded') return { failure: asFailure(error) };
      throw error;
    } finally {
      await recording.close();
    }
  }

  async #finish(job: Job, outcome: Outcome): Promise<void> {
    const { requests } = this.#options.stores;
    if (await requests.finish(job.requestId, job.lease, outcome)) {
      this.#options.metrics.jobs.inc({ outcome: 'result' in outcome ? 'completed' : 'failed' });
    }
    await this.#clearUnlessNeeded(job);
  }

  /** Erases the audio of a request that needs it no more, and the job with it. */
  async #clearUnlessNeeded({ requestId }: Job): Promise<void> {
    const { requests, blobs, queue } = this.#options.stores;
    const request = await requests.find(requestId);
    if (request?.state === 'queued' || request?.state === 'processing') return;
    await blobs.eraseGroup(requestId);
    await requests.forgetParts(requestId);
    await queue.remove(requestId);
  }

  async #giveBack(job: Job, error: unknown): Promise<void> {
    const { stores, logger } = this.#options;
    const stopping = this.#stop.signal.aborted || error instanceof ClosedError;
    // An AudioError that comes here says that ffmpeg has no place free.
    const passing = stopping || storageTrouble(error) !== undefined || error instanceof AudioError;
    if (!stopping) {
      const about = { err: error, asynch_request: job.requestId };
      logger.error(about, 'processing was broken off; the request is queued again');
    }
    await stores.requests.giveBack(job.requestId, job.lease);
    await stores.queue.release(job, { died: !passing });
  }

  /** What must be written is written when the disk is free and the database open again, not given up. */
  async #insist(step: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        return await step();
      } catch (error) {
        if (storageTrouble(error) === undefined || this.#stop.signal.aborted) throw error;
        this.#options.logger.error({ err: error }, 'the store cannot be written to; trying again');
      }
      await this.#pause();
    }
  }
}

/** A prediction that failed is a 422 whatever the cause, so a format that cannot be read is not a 415 here. */
function asFailure({ code, message, figures }: AudioError): Failure {
  const fits = code !== 'overloaded' && ERRORS[code].status === 422;
  return { code: fits ? code : 'unreadable_audio', detail: message, figures };
}

function lostTooOften(deaths: number): Failure {
  return {
    code: 'processing_failed',
    detail: `Processing was broken off ${deaths} times. Convert the recording to WAV and try again, or tell the operator.`,
    figures: { attempts: deaths },
  };
}
