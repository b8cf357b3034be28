import { ASYNCH_PATHS, parseTimestamp } from '@undertone/contract';
import { checkNames, modelProblem, NUMBERS, numberProblem, throwIfAny } from '../config.ts';
import {
  failingAs,
  InvalidRequestIdError,
  PredictionFailedError,
  RequestFailedError,
  UploadFailedError,
} from '../errors.ts';
import type { Context } from '../http.ts';
import { Reporter } from '../progress.ts';
import { ASYNCH_RETRIES, withRetries } from '../retry.ts';
import { openSource } from '../source.ts';
import type {
  AsynchResult,
  AudioInput,
  ClassifyOptions,
  DeleteOptions,
  EmotionsOptions,
  ProgressListener,
  TimelineStep,
  UploadOptions,
} from '../types.ts';
import { joinUrl } from '../urls.ts';
import { checkRequestId, type PollSettings, pollResult } from './poll.ts';
import { type UploadSettings, uploadSource } from './upload.ts';

const SHARED_OPTIONS = ['onProgress', 'signal'] as const;
const UPLOAD_OPTIONS = ['partSize', 'maxRetries', 'model', 'intervalSeconds'] as const;
const POLL_OPTIONS = ['maxTries', 'interval'] as const;

/** Long recordings: send one, then ask for its time line. */
export class AsynchInterface {
  readonly #begin: () => Context;

  /**
   * `begin` checks the settings; every operation calls it first.
   * @internal
   */
  constructor(begin: () => Context) {
    this.#begin = begin;
  }

  /**
   * Sends a recording of at least 5 seconds and at most 1 GiB, in parts, and returns the identifier to ask
   * for its result with.
   */
  upload(file: AudioInput, options?: UploadOptions): Promise<string>;
  upload(file: AudioInput, partSize?: number, maxRetries?: number): Promise<string>;
  async upload(file: AudioInput, second?: UploadOptions | number, maxRetries?: number): Promise<string> {
    const options: UploadOptions = isOptions(second) ? second : { partSize: second, maxRetries };
    checkNames('asynch.upload', options, [...UPLOAD_OPTIONS, ...SHARED_OPTIONS]);
    const context = this.#begin();
    const settings = uploadSettings(options, context.config.partSize);
    return this.#upload(context, file, settings, options.onProgress);
  }

  /**
   * Waits for the result of a request: asks up to `maxTries` times, with `interval` milliseconds between
   * two tries, and throws a `PredictionTimeoutError` when there is none by then.
   */
  emotions(requestId: string, options?: EmotionsOptions): Promise<AsynchResult>;
  emotions(requestId: string, maxTries?: number, interval?: number): Promise<AsynchResult>;
  async emotions(
    requestId: string,
    second?: EmotionsOptions | number,
    interval?: number,
  ): Promise<AsynchResult> {
    const options: EmotionsOptions = isOptions(second) ? second : { maxTries: second, interval };
    checkNames('asynch.emotions', options, [...POLL_OPTIONS, ...SHARED_OPTIONS]);
    const context = this.#begin();
    const settings = pollSettings(options, NUMBERS.maxTries.default);
    checkRequestId(requestId);
    return this.#poll(context, requestId, settings, options.onProgress);
  }

  /** Sends a recording and waits for its time line: until there is an end, unless `maxTries` is given. */
  async classify(file: AudioInput, options: ClassifyOptions = {}): Promise<AsynchResult> {
    checkNames('asynch.classify', options, [...UPLOAD_OPTIONS, ...POLL_OPTIONS, ...SHARED_OPTIONS]);
    const context = this.#begin();
    const upload = uploadSettings(options, context.config.partSize);
    const poll = pollSettings(options, Number.POSITIVE_INFINITY);
    const requestId = await this.#upload(context, file, upload, options.onProgress);
    return this.#poll(context, requestId, poll, options.onProgress);
  }

  /** Waits for a result as `emotions` does, then walks along its time line. */
  async *timeline(
    requestId: string,
    options: EmotionsOptions = {},
  ): AsyncGenerator<TimelineStep, void, undefined> {
    const { emotions } = await this.emotions(requestId, options);
    for (const element of emotions) yield { ...element, seconds: parseTimestamp(element.t) };
  }

  /** Deletes a request now: its audio, its parts and its result. */
  async delete(requestId: string, options: DeleteOptions = {}): Promise<void> {
    checkNames('asynch.delete', options, ['signal']);
    const context = this.#begin();
    checkRequestId(requestId);
    const { signal } = options;
    const url = joinUrl(context.config.asynchUrl, `${ASYNCH_PATHS.requests}/${requestId}`);
    const attempts = context.config.retryAttempts;
    const retries = { ...ASYNCH_RETRIES, attempts, what: 'Deleting the request', signal };
    await failingAs(errorOfRequest, requestId, () =>
      withRetries(context, retries, async (retry) => {
        try {
          await context.call({ method: 'DELETE', url, signal });
        } catch (error) {
          // An attempt before this one deleted it; only its answer was lost.
          const isGone = error instanceof RequestFailedError && error.status === 404;
          if (retry === 0 || !isGone) throw error;
        }
      }),
    );
  }

  #upload(
    context: Context,
    file: AudioInput,
    settings: UploadSettings,
    listener: ProgressListener | undefined,
  ): Promise<string> {
    return failingAs(
      () => UploadFailedError,
      undefined,
      async () => {
        settings.signal?.throwIfAborted();
        const source = await openSource(context.platform, file);
        const reporter = reporterFor(context, listener);
        try {
          return await uploadSource(context, source, settings, reporter);
        } finally {
          reporter.end();
          await source.close();
        }
      },
    );
  }

  #poll(
    context: Context,
    requestId: string,
    settings: PollSettings,
    listener: ProgressListener | undefined,
  ): Promise<AsynchResult> {
    return failingAs(errorOfRequest, requestId, async () => {
      const reporter = reporterFor(context, listener);
      try {
        return await pollResult(context, requestId, settings, reporter);
      } finally {
        reporter.end();
      }
    });
  }
}

function reporterFor(context: Context, listener: ProgressListener | undefined): Reporter {
  const terminal = context.config.showProgress ? context.platform.terminal() : null;
  return new Reporter(listener, terminal, context.log);
}

/** What a refusal means for somebody who asked about a request. */
function errorOfRequest({ status }: RequestFailedError) {
  if (status === 404 || status === 410) return InvalidRequestIdError;
  return status === 422 ? PredictionFailedError : RequestFailedError;
}

function uploadSettings(options: UploadOptions, defaultPartSize: number): UploadSettings {
  const { partSize = defaultPartSize, maxRetries = NUMBERS.maxRetries.default, model } = options;
  const { intervalSeconds, signal } = options;
  throwIfAny([
    numberProblem('partSize', partSize),
    numberProblem('maxRetries', maxRetries),
    modelProblem(model),
    intervalSeconds === undefined ? undefined : numberProblem('intervalSeconds', intervalSeconds),
  ]);
  return { partSize, maxRetries, model, intervalSeconds, signal };
}

function pollSettings(options: EmotionsOptions, defaultTries: number): PollSettings {
  const { maxTries, interval = NUMBERS.interval.default, signal } = options;
  throwIfAny([
    maxTries === undefined ? undefined : numberProblem('maxTries', maxTries),
    numberProblem('interval', interval),
  ]);
  return { maxTries: maxTries ?? defaultTries, intervalMs: interval, signal };
}

function isOptions<T extends object>(value: T | number | undefined): value is T {
  return typeof value === 'object' && value !== null;
}
