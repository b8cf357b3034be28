import type { Classifier, ClipPrediction } from '@undertone/classifier';
import { STREAM_LIMITS, type StreamError } from '@undertone/contract';
import type { FastifyBaseLogger } from 'fastify';
import type { Hold } from '../held-bytes.ts';
import type { RecheckKey } from '../http/auth.ts';
import type { Metrics } from '../operators/metrics.ts';
import { asProblem, retryLater } from '../problems.ts';
import type { StreamWindow } from './windows.ts';

export interface StreamTimes {
  /** Idle timeout: the client sends nothing, or does not read its answers. */
  readonly idleMs: number;
  /** Maximum window latency, from its last byte to its answer. */
  readonly lagMs: number;
  /** Interval of the key checks, whether or not audio comes. */
  readonly recheckMs: number;
  /** How long a client has to complete the close before its connection is cut. */
  readonly closeMs: number;
}

export const STREAM_TIMES: StreamTimes = {
  idleMs: STREAM_LIMITS.idleSeconds * 1_000,
  lagMs: STREAM_LIMITS.lagSeconds * 1_000,
  recheckMs: 10_000,
  closeMs: 2_000,
};

export interface SessionOptions {
  readonly classifier: Classifier;
  readonly metrics: Metrics;
  readonly recheckKey: RecheckKey;
  /** Counts classified audio. Rejects with the problem when the owner has used up its hours. */
  readonly addAudio: (seconds: number) => Promise<void>;
  /** For audio that waits; released when the connection closes. */
  readonly memory: Hold;
  readonly logger: FastifyBaseLogger;
  readonly times: StreamTimes;
}

export type StreamFailure = Omit<StreamError, 'type'>;

/**
 * One open stream, whatever its protocol: classifies windows, rechecks the key, reports failures and closes. A stream ends once, at its own close or when the connection is lost; nothing is sent after that.
 */
export abstract class StreamSession {
  readonly #options: SessionOptions;
  readonly #ended = new AbortController();
  readonly #closed = Promise.withResolvers<void>();

  constructor(options: SessionOptions) {
    this.#options = options;
    const timer = setInterval(() => this.#recheckKey(), options.times.recheckMs).unref();
    this.ended.addEventListener('abort', () => clearInterval(timer));
  }

  /** Resolves when the connection is closed. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  closeForShutdown(): void {
    this.close({ code: 'going_away', detail: 'The server is stopping. Connect again.' });
  }

  /** Aborted when the stream ends. */
  protected get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** One prediction for each channel. Rejects with the problem `overloaded` when that takes longer than `lagMs`. */
  protected async classifyWindow(
    { block, newSeconds }: StreamWindow,
    channelCount: number,
  ): Promise<ClipPrediction[]> {
    const { classifier, metrics, addAudio, times } = this.#options;
    this.#recheckKey();
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(tooLate(times.lagMs)), times.lagMs);
    const start = performance.now();
    const signal = AbortSignal.any([this.ended, late.signal]);
    const channels = Array.from({ length: channelCount }, (_, channel) => channel);
    try {
      const predictions = await Promise.all(
        channels.map((channel) =>
          classifier.classifySamples({ ...block, channel }, { priority: 'stream', signal }),
        ),
      );
      signal.throwIfAborted();
      metrics.observeWindow((performance.now() - start) / 1_000, newSeconds * channelCount);
      // Not awaited either.
      addAudio(newSeconds * channelCount).catch((error: unknown) => this.fail(error));
      return predictions;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Not awaited: a slow store must not delay an answer. A revoked key gets no further one. */
  #recheckKey(): void {
    this.#options.recheckKey().catch((error: unknown) => this.fail(error));
  }

  protected fail(error: unknown): void {
    if (this.ended.aborted) return;
    const { code, message: detail, cause } = asProblem(error);
    if (code === 'internal') this.#options.logger.error({ err: cause }, 'a stream failed');
    this.close({ code, detail });
  }

  protected close(error?: StreamFailure): void {
    if (this.ended.aborted) return;
    this.#ended.abort();
    const force = setTimeout(() => this.terminate(), this.#options.times.closeMs);
    void this.closed.then(() => clearTimeout(force));
    try {
      this.startClose(error);
    } catch (failure) {
      // Timers call this: an error here would end the process.
      this.#options.logger.error({ err: failure }, 'a stream could not be closed; cutting its connection');
      this.terminate();
    }
  }

  /** Sends the error, if there is one, and starts the close. */
  protected abstract startClose(error: StreamFailure | undefined): void;

  /** Cuts a connection that the client does not close. */
  protected abstract terminate(): void;

  /** The protocol calls this when the connection is closed, by either side. */
  protected connectionClosed(): void {
    this.#ended.abort();
    this.#closed.resolve();
  }
}

function tooLate(lagMs: number) {
  const detail = `The server is busy: an answer took longer than ${lagMs / 1_000} seconds. Try again later.`;
  return retryLater('overloaded', detail, 5);
}
