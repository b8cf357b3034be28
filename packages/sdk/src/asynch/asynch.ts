import { ASYNCH_PATHS, parseTimestamp, REQUEST_STATES, type WebhookSecret } from '@undertone/contract';
import {
  checkNames,
  choiceProblem,
  NUMBERS,
  numberProblem,
  recordingProblems,
  throwIfAny,
} from '../config.ts';
import { failingAs, RequestFailedError, UploadFailedError } from '../errors.ts';
import { type Context, readJson } from '../http.ts';
import { Reporter } from '../progress.ts';
import { ASYNCH_RETRIES, withRetries } from '../retry.ts';
import { type AudioSource, openSource } from '../source.ts';
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
import { checkRequestId, errorOfRequest, type PollSettings, pollResult } from './poll.ts';
import { submitSource } from './submit.ts';
import { uploadSource } from './upload.ts';

const SHARED_OPTIONS = ['onProgress', 'signal'] as const;
const RECORDING_OPTIONS = ['model', 'intervalSeconds', 'channels', 'label', 'webhookUrl'] as const;
const SUBMIT_OPTIONS = ['maxRetries', ...RECORDING_OPTIONS] as const;
const UPLOAD_OPTIONS = ['partSize', 'resume', ...SUBMIT_OPTIONS] as const;
const POLL_OPTIONS = ['maxTries', 'interval', 'details'] as const;

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
   * for its result with. An upload that is interrupted can be continued with `resume` for 24 hours.
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

  /** The same in one call instead of parts: quicker for small recordings, but nothing is kept when it breaks off. */
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

  /** Sends a recording and waits for its time line: until there is an end, unless `maxTries` is given. */
  async classify(file: AudioInput, options: ClassifyOptions = {}): Promise<AsynchResult> {
    checkNames('asynch.classify', options, [...UPLOAD_OPTIONS, ...POLL_OPTIONS, ...SHARED_OPTIONS]);
    const context = this.#begin();
    const upload = uploadSettings(options, context.config.partSize);
    const poll = pollSettings(options, Number.POSITIVE_INFINITY, undefined);
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

  /** The requests of this key, newest first, a page at a time. */
  async list(options: ListOptions = {}): Promise<RequestList> {
    checkNames('asynch.list', options, ['status', 'limit', 'cursor', 'signal']);
    const { status, limit, cursor, signal } = options;
    throwIfAny([
      choiceProblem('status', status, REQUEST_STATES),
      limit === undefined ? undefined : numberProblem('limit', limit),
    ]);
    const context = this.#begin();
    const url = joinUrl(context.config.asynchUrl, ASYNCH_PATHS.requests, { status, limit, cursor });
    const answer = await context.callWithRetries('Listing the requests', { method: 'GET', url, signal });
    return readJson<RequestList>(answer, withoutQuery(url), ({ requests }) => Array.isArray(requests));
  }

  /** What webhooks to this key are signed with: give it to a Standard Webhooks library to verify them. */
  async webhookSecret(): Promise<string> {
    const context = this.#begin();
    const url = joinUrl(context.config.asynchUrl, ASYNCH_PATHS.webhookSecret);
    const answer = await context.callWithRetries('Asking for the webhook secret', { method: 'GET', url });
    const isRight = ({ secret }: Record<string, unknown>) => typeof secret === 'string';
    return readJson<WebhookSecret>(answer, withoutQuery(url), isRight).secret;
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
    return failingAs(
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
