import { ASYNCH_PATHS, parseTimestamp, REQUEST_STATES, type WebhookSecret } from '@undertone/contract';
import {
  checkNames,
  choiceProblem,
  NUMBERS,
  numberProblem,
  recordingProblems,
  throwIfAny,
} from '../config.ts';
import { RequestFailedError, rethrowAs, UploadFailedError } from '../errors.ts';
import { type Context, readJson } from '../http.ts';
import type { AudioSource } from '../platform/platform.ts';
import { Reporter } from '../progress.ts';
import { ASYNCH_RETRIES, withRetries } from '../retry.ts';
import { openSource } from '../source.ts';
import type {
  AsynchResult,
  AudioInput,
  ClassifyOptions,
  DeleteOptions,
  EmotionsOptions,
  ListOptions,
  ProgressListener,
  RequestList,
  SubmitOptions,
  TimelineStep,
  UploadOptions,
} from '../types.ts';
import { joinUrl, withoutQuery } from '../urls.ts';
import type { UploadSettings } from './open.ts';
import { checkRequestId, type PollSettings, pollResult, requestErrorClass } from './poll.ts';
import { submitSource } from './submit.ts';
import { uploadSource } from './upload.ts';

const SHARED_OPTIONS = ['onProgress', 'signal'] as const;
const RECORDING_OPTIONS = ['model', 'intervalSeconds', 'channels', 'label', 'webhookUrl'] as const;
const SUBMIT_OPTIONS = ['maxRetries', ...RECORDING_OPTIONS] as const;
const UPLOAD_OPTIONS = ['partSize', 'resume', ...SUBMIT_OPTIONS] as const;
const POLL_OPTIONS = ['maxTries', 'interval', 'details'] as const;

/** Long recordings: upload one, then fetch its timeline. */
export class AsynchInterface {
  readonly #begin: () => Context;

  /**
   * Every operation first calls `begin`, which checks the settings.
   * @internal
   */
  constructor(begin: () => Context) {
    this.#begin = begin;
  }

  /**
   * Uploads a recording of at least 5 seconds and at most 1 GiB in parts. Returns the request ID. An interrupted upload
   * can be continued with `resume` for 24 hours.
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

  /** Uploads a recording in one call: faster for small files, but it cannot be resumed. Returns the request ID. */
  async submit(file: AudioInput, options: SubmitOptions = {}): Promise<string> {
    checkNames('asynch.submit', options, [...SUBMIT_OPTIONS, ...SHARED_OPTIONS]);
    const context = this.#begin();
    const { maxRetries = NUMBERS.maxRetries.default, signal } = options;
    throwIfAny([numberProblem('maxRetries', maxRetries), ...recordingProblems(options)]);
    const settings = { recording: options, maxRetries, signal };
    return this.#send(context, file, signal, options.onProgress, (source, reporter) =>
      submitSource(context, source, settings, reporter),
    );
  }

  /**
   * Waits for the result of a request: polls up to `maxTries` times, every `interval` milliseconds, then throws a
   * `PredictionTimeoutError`.
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
    const settings = pollSettings(options, NUMBERS.maxTries.default, NUMBERS.interval.default);
    checkRequestId(requestId);
    return this.#poll(context, requestId, settings, options.onProgress);
  }

  /** Waits until a request has ended, unless `maxTries` is given: polls often at first, then every 5 seconds. */
  async wait(requestId: string, options: EmotionsOptions = {}): Promise<AsynchResult> {
    checkNames('asynch.wait', options, [...POLL_OPTIONS, ...SHARED_OPTIONS]);
    const context = this.#begin();
    const settings = pollSettings(options, Number.POSITIVE_INFINITY, undefined);
    checkRequestId(requestId);
    return this.#poll(context, requestId, settings, options.onProgress);
  }

  /** Uploads a recording and waits for its timeline, without a limit unless `maxTries` is given. */
  async classify(file: AudioInput, options: ClassifyOptions = {}): Promise<AsynchResult> {
    checkNames('asynch.classify', options, [...UPLOAD_OPTIONS, ...POLL_OPTIONS, ...SHARED_OPTIONS]);
    const context = this.#begin();
    const upload = uploadSettings(options, context.config.partSize);
    const poll = pollSettings(options, Number.POSITIVE_INFINITY, undefined);
    const requestId = await this.#upload(context, file, upload, options.onProgress);
    return this.#poll(context, requestId, poll, options.onProgress);
  }

  /** Waits for a result like `emotions`, then yields the steps of its timeline. */
  async *timeline(
    requestId: string,
    options: EmotionsOptions = {},
  ): AsyncGenerator<TimelineStep, void, undefined> {
    const { emotions } = await this.emotions(requestId, options);
    for (const element of emotions) yield { ...element, seconds: parseTimestamp(element.t) };
  }

  /** One page of the requests of this key, newest first. */
  async list(options: ListOptions = {}): Promise<RequestList> {
    checkNames('asynch.list', options, ['status', 'limit', 'cursor', 'signal']);
    const { status, limit, cursor, signal } = options;
    throwIfAny([
      choiceProblem('status', status, REQUEST_STATES),
      limit === undefined ? undefined : numberProblem('limit', limit),
    ]);
    const context = this.#begin();
    const url = joinUrl(context.config.asynchUrl, ASYNCH_PATHS.requests, { status, limit, cursor });
    const response = await context.callWithRetries('Listing the requests', { method: 'GET', url, signal });
    return readJson<RequestList>(response, withoutQuery(url), ({ requests }) => Array.isArray(requests));
  }

  /** The signing secret for webhooks of this key, to verify them with a Standard Webhooks library. */
  async webhookSecret(): Promise<string> {
    const context = this.#begin();
    const url = joinUrl(context.config.asynchUrl, ASYNCH_PATHS.webhookSecret);
    const response = await context.callWithRetries('Fetching the webhook secret', { method: 'GET', url });
    const isValid = ({ secret }: Record<string, unknown>) => typeof secret === 'string';
    return readJson<WebhookSecret>(response, withoutQuery(url), isValid).secret;
  }

  /** Deletes a request with its audio and its result. */
  async delete(requestId: string, options: DeleteOptions = {}): Promise<void> {
    checkNames('asynch.delete', options, ['signal']);
    const context = this.#begin();
    checkRequestId(requestId);
    const { signal } = options;
    const url = joinUrl(context.config.asynchUrl, `${ASYNCH_PATHS.requests}/${requestId}`);
    const attempts = context.config.retryAttempts;
    const retries = { ...ASYNCH_RETRIES, attempts, what: 'Deleting the request', signal };
    await rethrowAs(requestErrorClass, requestId, () =>
      withRetries(context, retries, async (retry) => {
        try {
          await context.call({ method: 'DELETE', url, signal });
        } catch (error) {
          // An earlier attempt deleted it, but its response was lost.
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
    return this.#send(context, file, settings.signal, listener, (source, reporter) =>
      uploadSource(context, source, settings, reporter),
    );
  }

  #send(
    context: Context,
    file: AudioInput,
    signal: AbortSignal | undefined,
    listener: ProgressListener | undefined,
    send: (source: AudioSource, reporter: Reporter) => Promise<string>,
  ): Promise<string> {
    return rethrowAs(
      () => UploadFailedError,
      undefined,
      async () => {
        signal?.throwIfAborted();
        const source = await openSource(context.platform, file);
        const reporter = reporterFor(context, listener);
        try {
          return await send(source, reporter);
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
    return rethrowAs(requestErrorClass, requestId, async () => {
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

function uploadSettings(options: UploadOptions, defaultPartSize: number): UploadSettings {
  const { partSize = defaultPartSize, maxRetries = NUMBERS.maxRetries.default, resume, signal } = options;
  throwIfAny([
    numberProblem('partSize', partSize),
    numberProblem('maxRetries', maxRetries),
    ...recordingProblems(options),
  ]);
  if (resume !== undefined) checkRequestId(resume);
  return { recording: options, partSize, maxRetries, resume, signal };
}

function pollSettings(
  options: EmotionsOptions,
  defaultTries: number,
  defaultInterval: number | undefined,
): PollSettings {
  const { maxTries, interval, details = true, signal } = options;
  throwIfAny([
    maxTries === undefined ? undefined : numberProblem('maxTries', maxTries),
    interval === undefined ? undefined : numberProblem('interval', interval),
  ]);
  return { maxTries: maxTries ?? defaultTries, intervalMs: interval ?? defaultInterval, details, signal };
}

function isOptions<T extends object>(value: T | number | undefined): value is T {
  return typeof value === 'object' && value !== null;
}
