import { setTimeout as sleep } from 'node:timers/promises';
import { ClosedError, NoThreadsError, OverloadedError } from '@undertone/classifier';
import type { FastifyBaseLogger } from 'fastify';
import type { Claim } from '../stores/contracts.ts';
import { StoreUnavailableError } from '../stores/errors.ts';
import { withSpan } from '../telemetry/telemetry.ts';
import { traceFields } from '../trace.ts';
import { type ClassifyDependencies, classifyRequest } from './result.ts';
import { UnreadableRecordings } from './unreadable.ts';

export interface WorkerTimes {
  /** Lease of a claimed request. A worker that does not renew it in time is presumed dead. */
  readonly leaseMs: number;
  /** How often lease and progress are written. */
  readonly renewEveryMs: number;
  /** How often to poll for requests that no event announced. */
  readonly pollMs: number;
  /** Delay after an error. */
  readonly pauseMs: number;
  /** Delay of the second and the third attempt. */
  readonly attemptDelaysMs: readonly number[];
  /** Delay of a request whose store is unavailable: the first one, doubled each time up to the longest. */
  readonly postponeMs: number;
  readonly longestPostponeMs: number;
  /** How long a stop tries to requeue running jobs while the store is unavailable. */
  readonly stopMs: number;
}

export const LEASE_MS = 6_000;

const TIMES: WorkerTimes = {
  leaseMs: LEASE_MS,
  renewEveryMs: 2_000,
  pollMs: 1_000,
  pauseMs: 1_000,
  attemptDelaysMs: [5_000, 60_000],
  postponeMs: 1_000,
  longestPostponeMs: 60_000,
  stopMs: 5_000,
};

/**
 * Jobs beyond the usual number, each of an owner who has none running in this process: however long the recordings of one
 * owner are, another one's is begun at once. They share the inference threads, so they cost memory alone.
 */
const MAX_EXTRA_JOBS = 6;

interface WorkerOptions extends ClassifyDependencies {
  readonly logger: FastifyBaseLogger;
  /** Called when a request is completed or failed. */
  readonly onFinished: () => void;
  /** Seconds of audio were classified for this owner. */
  readonly onAudio: (owner: string, seconds: number) => void;
  /** True if the store of the recordings was found to work since then, by `performance.now`. */
  readonly couldStoreRecordings: (since: number) => Promise<boolean>;
  /** Concurrent jobs. More run only for owners who have none running. */
  readonly jobs: number;
  readonly times?: Partial<WorkerTimes>;
}

/**
 * Claims recordings and classifies them, several concurrently. A job goes through these steps:
 *
 * - Claim: a queued request, or one whose lease ran out. A heartbeat renews the lease until the job ends.
 * - Classify. Audio that cannot be used is a `failed` outcome, and so is a third failed attempt.
 * - Finish: write the outcome. Then erase the audio; if that fails, the sweep does it later.
 *
 * Three things end a job early:
 *
 * - An error requeues the request for later, so that it never blocks the queue. It counts as a failed attempt unless the
 *   worker is stopping or the error is transient (store unavailable, no inference thread, full queue, no free ffmpeg slot).
 *   A recording that cannot be read, although its store was found to work since it first could not, counts.
 * - A request that was deleted, expired or claimed by another worker cancels its job; nothing is written.
 * - A crash lets the lease run out. The next claim counts a failed attempt and starts from the beginning.
 */
export class RecordingWorker {
  readonly #options: WorkerOptions;
  readonly #times: WorkerTimes;
  readonly #stopping = new AbortController();
  #giveUpAt = Number.POSITIVE_INFINITY;
  /** Jobs of this process, by request id. */
  readonly #running = new Map<string, { lease: string; owner: string; cancelled: AbortController }>();
  readonly #jobs = new Set<Promise<void>>();
  readonly #unreadable: UnreadableRecordings;
  #wakeUp = Promise.withResolvers<void>();
  #loop: Promise<void> | undefined;
  #storeUnavailable = false;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#times = { ...TIMES, ...options.times };
    this.#unreadable = new UnreadableRecordings({ ...options, signal: this.#stopping.signal });
  }

  start(): void {
    this.#loop ??= this.#claimJobs();
  }

  /** A recording was queued: claim it now. */
  wake(): void {
    this.#wakeUp.resolve();
    this.#wakeUp = Promise.withResolvers();
  }

  /** The request was deleted: cancel its job, if it runs in this process. */
  cancel(requestId: string): void {
    this.#running.get(requestId)?.cancelled.abort();
  }

  /** Requeues running jobs and claims no more. */
  async stop(): Promise<void> {
    this.#giveUpAt = Math.min(this.#giveUpAt, performance.now() + this.#times.stopMs);
    this.#stopping.abort();
    this.wake();
    await this.#loop;
    await Promise.all(this.#jobs);
  }

  async #claimJobs(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const woken = this.#wakeUp.promise;
      try {
        const claim = await this.#claim();
        if (claim !== null) this.#startJob(claim);
        else await Promise.race([woken, this.#pause(this.#times.pollMs)]);
      } catch (error) {
        await this.#pauseAfter(error);
      }
    }
  }

  #startJob(claim: Claim): void {
    const job = this.#runJob(claim)
      .catch((error: unknown) => this.#pauseAfter(error))
      .finally(() => {
        this.#jobs.delete(job);
        this.wake();
      });
    this.#jobs.add(job);
  }

  async #claim(): Promise<Claim | null> {
    const { requests, jobs } = this.#options;
    if (this.#jobs.size >= jobs + MAX_EXTRA_JOBS) return null;
    const running = [...this.#running.values()];
    const claim = await requests.claim({
      leaseMs: this.#times.leaseMs,
      running: running.map(({ lease }) => lease),
      exceptOwners: this.#jobs.size < jobs ? [] : running.map(({ owner }) => owner),
    });
    this.#logStoreState(true);
    return claim;
  }

  async #pauseAfter(error: unknown): Promise<void> {
    if (error instanceof StoreUnavailableError) this.#logStoreState(false, error);
    else this.#options.logger.error({ err: error }, 'the worker failed; trying again');
    await this.#pause(this.#times.pauseMs);
  }

  async #runJob(claim: Claim): Promise<void> {
    const { requests, metrics, telemetry, onFinished, onAudio } = this.#options;
    const { request, lease, failedAttempts, trace, waitedMs } = claim;
    const cancelled = new AbortController();
    const attempt = failedAttempts + 1;
    const logger = this.#options.logger.child({ ...traceFields(trace), recording: request.id, attempt });
    logger.info({ waited_ms: Math.round(waitedMs) }, 'recording claimed');
    const start = performance.now();
    const ms = () => Math.round(performance.now() - start);
    let progress = 0;
    this.#running.set(request.id, { lease, owner: request.owner, cancelled });
    const heartbeat = setInterval(() => {
      const { leaseMs } = this.#times;
      // An unavailable store does not stop the job: if the lease runs out meanwhile, `finish` is refused.
      requests.renew(request.id, lease, { leaseMs, progress }).then(
        (ours) => !ours && cancelled.abort(),
        () => undefined,
      );
    }, this.#times.renewEveryMs);
    try {
      const parent = trace?.traceparent;
      const attributes = { 'undertone.recording': request.id, 'undertone.attempt': attempt };
      const signal = AbortSignal.any([cancelled.signal, this.#stopping.signal]);
      const onProgress = (share: number) => {
        progress = share;
      };
      const classified = await withSpan(telemetry, 'process recording', { parent, attributes }, () =>
        classifyRequest(claim, this.#options, { signal, onProgress }),
      );
      this.#unreadable.forget(request.id);
      const { outcome, seconds, chunks = [] } = classified;
      for (const chunk of chunks) {
        const held = await this.#retryUntilStored(() => requests.addResultChunk(request.id, lease, chunk));
        if (!held) break;
      }
      const stored = await this.#retryUntilStored(() => requests.finish(request.id, lease, outcome, seconds));
      if (stored) {
        const code = 'failure' in outcome ? outcome.failure.code : undefined;
        metrics.jobs.inc({ outcome: code === undefined ? 'completed' : 'failed' });
        const line = { ms: ms(), audio_seconds: seconds, code };
        logger.info(line, code === undefined ? 'recording completed' : 'recording failed');
      }
      // Not stored: another worker has it now, or an earlier try was written and its answer lost.
      else if ((await requests.needingBlobs([request.id])).length > 0) return;
      if (stored && seconds !== undefined) onAudio(request.owner, seconds);
      onFinished();
      await this.#eraseAudio(request.id);
    } catch (error) {
      if (cancelled.signal.aborted) {
        logger.info(
          { ms: ms() },
          'recording cancelled: it was deleted, has expired, or another worker has it',
        );
        return;
      }
      const isTransient = this.#stopping.signal.aborted || (await this.#isTransient(error, request.id));
      const stopping = this.#stopping.signal.aborted;
      const countAttempt = !isTransient && !stopping;
      const afterMs = stopping ? 0 : this.#delayOf(claim, countAttempt);
      const options = { countAttempt, afterMs };
      const line = { ms: ms(), after_ms: afterMs, counted: countAttempt };
      if (stopping) logger.info(line, 'recording requeued: this worker is stopping');
      else logger.error({ ...line, err: error }, 'recording requeued after an error');
      await this.#retryUntilStored(() => requests.requeue(request.id, lease, options));
      setTimeout(() => this.wake(), afterMs).unref();
      if (!countAttempt) await this.#pause(this.#times.pauseMs);
    } finally {
      clearInterval(heartbeat);
      this.#running.delete(request.id);
    }
  }

  #delayOf({ failedAttempts, postponed }: Claim, countAttempt: boolean): number {
    const { attemptDelaysMs, postponeMs, longestPostponeMs } = this.#times;
    // After the last attempt there is nothing to wait for: the next claim fails the request.
    if (countAttempt) return attemptDelaysMs[failedAttempts] ?? 0;
    return Math.min(longestPostponeMs, postponeMs * 2 ** Math.min(postponed, 30));
  }

  /** Passes without a change to the recording. */
  async #isTransient(error: unknown, requestId: string): Promise<boolean> {
    if (error instanceof StoreUnavailableError) return !(await this.#unreadable.isUnreadable(requestId));
    return [OverloadedError, NoThreadsError, ClosedError].some((kind) => error instanceof kind);
  }

  /** The sweep erases what cannot be erased now. */
  async #eraseAudio(requestId: string): Promise<void> {
    const { requests, blobs, logger } = this.#options;
    try {
      await blobs.eraseGroup(requestId);
      await requests.noteErased([requestId]);
    } catch (error) {
      logger.warn({ err: error, recording: requestId }, 'the audio could not be erased; trying again later');
    }
  }

  /** Retries while the store is unavailable. Gives up only some time after the worker was stopped. */
  async #retryUntilStored(step: () => Promise<boolean>): Promise<boolean> {
    const { pauseMs } = this.#times;
    for (;;) {
      try {
        const done = await step();
        this.#logStoreState(true);
        return done;
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) throw error;
        this.#logStoreState(false, error);
        if (performance.now() > this.#giveUpAt) throw error;
      }
      // Not `#pause`, which returns at once while stopping and would make this a busy loop.
      await sleep(this.#stopping.signal.aborted ? Math.min(pauseMs, 200) : pauseMs);
    }
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stopping.signal, ref: false }).catch(() => undefined);
  }

  /** Logs only changes, however many calls fail in between. */
  #logStoreState(available: boolean, error?: unknown): void {
    if (this.#storeUnavailable !== available) return;
    this.#storeUnavailable = !available;
    if (available) this.#options.logger.info('the store is available again');
    else this.#options.logger.error({ err: error }, 'the store is unavailable; trying again');
  }
}
