import { setTimeout as sleep } from 'node:timers/promises';
import { AudioError } from '@undertone/audio';
import {
  type Classifier,
  ClosedError,
  NoThreadsError,
  OverloadedError,
  type RecordingSource,
} from '@undertone/classifier';
import { ASYNCH_LIMITS, isErrorCode } from '@undertone/contract';
import type { FastifyBaseLogger } from 'fastify';
import type { BlobStore } from '../stores/blobs.ts';
import type { AsynchRequest, Claim, Failure, Outcome, Part, RequestStore } from '../stores/contracts.ts';
import { StoreUnavailableError } from '../stores/errors.ts';
import type { AsynchMetrics } from './metrics.ts';
import { writeResult } from './result.ts';

export interface ProcessorTimes {
  /** A lease that is not renewed for so long belongs to a dead worker. */
  readonly leaseMs: number;
  /** Progress and lease are written this often. */
  readonly renewEveryMs: number;
  /** How often to look for requests that nobody told us of. */
  readonly pollMs: number;
  /** After trouble that is not the recording's fault. */
  readonly pauseMs: number;
  /** How long a stop tries to give back what is running while the store is away. */
  readonly stopMs: number;
}

export const LEASE_MS = 6_000;

const TIMES: ProcessorTimes = {
  leaseMs: LEASE_MS,
  renewEveryMs: 2_000,
  pollMs: 1_000,
  pauseMs: 1_000,
  stopMs: 5_000,
};

interface ProcessorOptions {
  readonly requests: RequestStore;
  readonly blobs: BlobStore;
  readonly classifier: Classifier;
  readonly metrics: AsynchMetrics;
  readonly logger: FastifyBaseLogger;
  /** A request is completed or failed: somebody may have to be told. */
  readonly onFinished: () => void;
  /** Recordings processed at the same time. */
  readonly jobs: number;
  readonly times?: Partial<ProcessorTimes>;
}

interface Finished {
  readonly outcome: Outcome;
  /** How long the recording is, when it could be read. */
  readonly seconds?: number;
}

/**
 * Takes one recording after another, several side by side. In words:
 *
 * - Claim, classify, write the outcome, erase the audio. A crash in between leaves a lease that runs out; whoever claims
 *   the request then starts from the beginning.
 * - A recording that cannot be used makes the request `failed`.
 * - What is not the recording's fault (the store is away, no thread is alive, ffmpeg has no free slot, a stop) requeues
 *   it as if nothing had been. Anything else counts as a failed attempt, and the third one makes the request `failed`.
 * - Deleted, expired or claimed by somebody else: the renewal of the lease says so, and the work is dropped.
 */
export class AsynchProcessor {
  readonly #options: ProcessorOptions;
  readonly #times: ProcessorTimes;
  readonly #stopping = new AbortController();
  /** By request id: what is in hand here. */
  readonly #running = new Map<string, { lease: string; dropped: AbortController }>();
  #wakeUp = Promise.withResolvers<void>();
  #loops: Promise<void>[] = [];
  #storeIsAway = false;

  constructor(options: ProcessorOptions) {
    this.#options = options;
    this.#times = { ...TIMES, ...options.times };
  }

  start(): void {
    if (this.#loops.length === 0) {
      this.#loops = Array.from({ length: this.#options.jobs }, () => this.#loop());
    }
  }

  /** A recording is waiting: look now. */
  wake(): void {
    this.#wakeUp.resolve();
    this.#wakeUp = Promise.withResolvers();
  }

  /** The request was deleted: stop at once if it is in hand here. */
  drop(requestId: string): void {
    this.#running.get(requestId)?.dropped.abort();
  }

  /** Gives back what is in hand, and claims nothing more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.wake();
    await Promise.all(this.#loops);
  }

  async #loop(): Promise<void> {
    const { leaseMs, pollMs } = this.#times;
    while (!this.#stopping.signal.aborted) {
      const woken = this.#wakeUp.promise;
      try {
        const running = [...this.#running.values()].map(({ lease }) => lease);
        const claim = await this.#options.requests.claim({ leaseMs, running });
        this.#noteStore(true);
        if (claim !== null) await this.#process(claim);
        else await Promise.race([woken, this.#pause(pollMs)]);
      } catch (error) {
        if (error instanceof StoreUnavailableError) this.#noteStore(false, error);
        else this.#options.logger.error({ err: error }, 'processing could not go on; trying again');
        await this.#pause(this.#times.pauseMs);
      }
    }
  }

  async #process(claim: Claim): Promise<void> {
    const { requests, metrics, logger, onFinished } = this.#options;
    const { request, lease, failedAttempts } = claim;
    const dropped = new AbortController();
    let progress = 0;
    this.#running.set(request.id, { lease, dropped });
    const heartbeat = setInterval(() => {
      const { leaseMs } = this.#times;
      // A store that is away is no reason to stop: if it lasts, the lease runs out, and then the outcome is refused.
      requests.renew(request.id, lease, { leaseMs, progress }).then(
        (ours) => !ours && dropped.abort(),
        () => undefined,
      );
    }, this.#times.renewEveryMs);
    try {
      const { outcome, seconds }: Finished =
        failedAttempts >= ASYNCH_LIMITS.maxAttempts
          ? { outcome: { failure: tooManyAttempts(failedAttempts) } }
          : await this.#classify(request, dropped.signal, (share) => {
              progress = share;
            });
      const stored = await this.#retryUntilStored(() => requests.finish(request.id, lease, outcome, seconds));
      if (stored) metrics.jobs.inc({ outcome: 'result' in outcome ? 'completed' : 'failed' });
      // Not stored: it is somebody else's now, or an earlier try was written without our knowing.
      else if ((await requests.needingBlobs([request.id])).length > 0) return;
      onFinished();
      await this.#eraseAudio(request.id);
    } catch (error) {
      if (dropped.signal.aborted) return;
      const countAttempt = !this.#stopping.signal.aborted && !passes(error);
      if (!this.#stopping.signal.aborted) {
        logger.error(
          { err: error, asynch_request: request.id },
          'processing broke off; the request is requeued',
        );
      }
      await this.#retryUntilStored(() => requests.requeue(request.id, lease, { countAttempt }));
      await this.#pause(this.#times.pauseMs);
    } finally {
      clearInterval(heartbeat);
      this.#running.delete(request.id);
    }
  }

  async #classify(
    request: AsynchRequest,
    dropped: AbortSignal,
    onProgress: (share: number) => void,
  ): Promise<Finished> {
    const { requests, blobs, classifier, metrics } = this.#options;
    const start = performance.now();
    if (!classifier.catalog.models.some(({ id }) => id === request.model)) {
      return { outcome: { failure: modelIsGone(request.model) } };
    }
    try {
      const source = joinParts(blobs, request.id, await requests.parts(request.id));
      const prediction = await classifier.classifyRecording(source, {
        stepSeconds: request.intervalSeconds,
        channels: request.channels,
        signal: AbortSignal.any([dropped, this.#stopping.signal]),
        onProgress,
      });
      metrics.observeJob((performance.now() - start) / 1000, prediction.seconds);
      const seconds = Number(prediction.seconds.toFixed(3));
      return { outcome: { result: writeResult(request, prediction, classifier.weightsName) }, seconds };
    } catch (error) {
      if (error instanceof AudioError) return { outcome: { failure: asFailure(error) } };
      throw error;
    }
  }

  /** What cannot be erased now is found by the sweep. */
  async #eraseAudio(requestId: string): Promise<void> {
    const { requests, blobs, logger } = this.#options;
    try {
      await blobs.eraseGroup(requestId);
      await requests.deleteParts(requestId);
    } catch (error) {
      logger.warn({ err: error, asynch_request: requestId }, 'the audio could not be erased yet');
    }
  }

  /** What must be written is written when the store is back, not given up. */
  async #retryUntilStored(step: () => Promise<boolean>): Promise<boolean> {
    const { pauseMs, stopMs } = this.#times;
    let giveUpAt = Number.POSITIVE_INFINITY;
    for (;;) {
      try {
        const done = await step();
        this.#noteStore(true);
        return done;
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) throw error;
        this.#noteStore(false, error);
        if (this.#stopping.signal.aborted) giveUpAt = Math.min(giveUpAt, performance.now() + stopMs);
        if (performance.now() > giveUpAt) throw error;
      }
      // Not `#pause`: a stop must not turn this into a tight loop.
      await sleep(this.#stopping.signal.aborted ? Math.min(pauseMs, 200) : pauseMs);
    }
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stopping.signal, ref: false }).catch(() => undefined);
  }

  /** One line when the store goes away and one when it is back, however often we try in between. */
  #noteStore(available: boolean, error?: unknown): void {
    if (this.#storeIsAway !== available) return;
    this.#storeIsAway = !available;
    if (available) this.#options.logger.info('the store is available again');
    else this.#options.logger.error({ err: error }, 'the store is not available; trying again');
  }
}

/** Passes by itself, and says nothing about the recording. */
function passes(error: unknown): boolean {
  return [StoreUnavailableError, OverloadedError, NoThreadsError, ClosedError].some(
    (kind) => error instanceof kind,
  );
}

/** The parts of an upload as one recording again, read one after another where they lie. */
function joinParts(blobs: BlobStore, group: string, parts: readonly Part[]): RecordingSource {
  const size = parts.reduce((sum, { bytes }) => sum + bytes, 0);
  return {
    size,
    async *read(start = 0, end = size) {
      let partStart = 0;
      for (const { blob, bytes, etag } of parts) {
        const from = Math.max(0, start - partStart);
        const to = Math.min(bytes, end - partStart);
        if (from < to) yield* blobs.read(group, blob, { start: from, end: to, etag });
        partStart += bytes;
      }
    },
  };
}

/** A prediction that failed is a 422 whatever the cause, so a format that cannot be read is not a 415 here. */
function asFailure({ code, message, figures }: AudioError): Failure {
  const known = isErrorCode(code) && code !== 'unsupported_media_type' && code !== 'bad_request';
  return { code: known ? code : 'unreadable_audio', detail: message, figures };
}

/** The server was started with another catalogue since the upload. */
function modelIsGone(model: string): Failure {
  return { code: 'unknown_model', detail: `This server no longer has the model ${model}.`, figures: {} };
}

function tooManyAttempts(attempts: number): Failure {
  return {
    code: 'processing_failed',
    detail: `Processing broke off ${attempts} times. Convert the recording to WAV and try again, or tell the operator.`,
    figures: { attempts },
  };
}
