import { parseTimestamp, REQUEST_STATES } from '@undertone/contract';
import {
  checkNames,
  choiceProblem,
  NUMBERS,
  numberProblem,
  recordingProblems,
  throwIfAny,
} from '../config.ts';
import { rethrowAs, UploadFailedError } from '../errors.ts';
import { type Context, operate } from '../http.ts';
import type { AudioSource } from '../platform/platform.ts';
import { Reporter } from '../progress.ts';
import { openSource } from '../source.ts';
import type {
  AsynchResult,
  AsynchStatus,
  AudioInput,
  CallOptions,
  ClassifyOptions,
  EmotionsOptions,
  ListOptions,
  ProgressListener,
  RequestList,
  RequestSummary,
  SubmitOptions,
  TimelineStep,
  UploadOptions,
} from '../types.ts';
import type { UploadSettings } from './open.ts';
import { checkRequestId, type PollSettings, pollErrorClass, pollResult } from './poll.ts';
import { deleteRequest, fetchStatus, fetchWebhookSecret, listRequests } from './requests.ts';
import { submitSource } from './submit.ts';
import { uploadSource } from './upload.ts';

const CALL_OPTIONS = ['signal', 'timeout'] as const;
const SHARED_OPTIONS = ['onProgress', ...CALL_OPTIONS] as const;
const RECORDING_OPTIONS = ['model', 'intervalSeconds', 'channels', 'label', 'webhookUrl'] as const;
const SUBMIT_OPTIONS = ['maxRetries', ...RECORDING_OPTIONS] as const;
const UPLOAD_OPTIONS = ['partSize', 'resume', ...SUBMIT_OPTIONS] as const;
const LIST_OPTIONS = ['status', 'limit', 'cursor', ...CALL_OPTIONS] as const;
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
    return operate(this.#begin, options, (context, signal) => {
      const settings = uploadSettings({ ...options, signal }, context.config.partSize);
      return this.#upload(context, file, settings, options.onProgress);
    });
  }

  /** Uploads a recording in one call: faster for small files, but it cannot be resumed. Returns the request ID. */
  async submit(file: AudioInput, options: SubmitOptions = {}): Promise<string> {
    checkNames('asynch.submit', options, [...SUBMIT_OPTIONS, ...SHARED_OPTIONS]);
    const { maxRetries = NUMBERS.maxRetries.default } = options;
    throwIfAny([numberProblem('maxRetries', maxRetries), ...recordingProblems(options)]);
    return operate(this.#begin, options, (context, signal) => {
      const settings = { recording: options, maxRetries, signal };
      return this.#send(context, file, signal, options.onProgress, (source, reporter) =>
        submitSource(context, source, settings, reporter),
      );
    });
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
    return this.#poll(requestId, options, NUMBERS.maxTries.default, NUMBERS.interval.default);
  }

  /** Waits until a request has ended, unless `maxTries` is given: polls often at first, then every 5 seconds. */
  async wait(requestId: string, options: EmotionsOptions = {}): Promise<AsynchResult> {
    checkNames('asynch.wait', options, [...POLL_OPTIONS, ...SHARED_OPTIONS]);
    return this.#poll(requestId, options, Number.POSITIVE_INFINITY, undefined);
  }

  /** Uploads a recording and waits for its timeline, without a limit unless `maxTries` or `timeout` is given. */
  async classify(file: AudioInput, options: ClassifyOptions = {}): Promise<AsynchResult> {
    checkNames('asynch.classify', options, [...UPLOAD_OPTIONS, ...POLL_OPTIONS, ...SHARED_OPTIONS]);
    return operate(this.#begin, options, async (context, signal) => {
      const limited = { ...options, signal };
      const upload = uploadSettings(limited, context.config.partSize);
      const poll = pollSettings(limited, Number.POSITIVE_INFINITY, undefined);
      const requestId = await this.#upload(context, file, upload, options.onProgress);
      return pollWithProgress(context, requestId, poll, options.onProgress);
    });
  }

  /** The state of a request. Only an unknown request ID throws: a request that failed or expired has an `error`. */
  async status(requestId: string, options: CallOptions = {}): Promise<AsynchStatus> {
    checkNames('asynch.status', options, CALL_OPTIONS);
    checkRequestId(requestId);
    return operate(this.#begin, options, (context, signal) => fetchStatus(context, requestId, signal));
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
    checkNames('asynch.list', options, LIST_OPTIONS);
    const { status, limit, cursor } = options;
    throwIfAny([
      choiceProblem('status', status, REQUEST_STATES),
      limit === undefined ? undefined : numberProblem('limit', limit),
    ]);
    const query = { status, limit, cursor };
    return operate(this.#begin, options, (context, signal) => listRequests(context, query, signal));
  }

  /** All requests of this key, newest first. Fetches the next page of `limit` requests when it is needed. */
  async *listAll(options: ListOptions = {}): AsyncGenerator<RequestSummary, void, undefined> {
    let cursor = options.cursor ?? null;
    do {
      const page: RequestList = await this.list({ ...options, cursor: cursor ?? undefined });
      yield* page.requests;
      cursor = page.next_cursor;
    } while (cursor !== null);
  }

  /** The signing secret for webhooks of this key, for `webhooks.verify`. */
  async webhookSecret(options: CallOptions = {}): Promise<string> {
    checkNames('asynch.webhookSecret', options, CALL_OPTIONS);
    return operate(this.#begin, options, fetchWebhookSecret);
  }

  /** Deletes a request with its audio and its result. */
  async delete(requestId: string, options: CallOptions = {}): Promise<void> {
    checkNames('asynch.delete', options, CALL_OPTIONS);
    checkRequestId(requestId);
    await operate(this.#begin, options, (context, signal) => deleteRequest(context, requestId, signal));
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
        const source = await openSource(context.platform, file, signal);
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

  async #poll(
    requestId: string,
    options: EmotionsOptions,
    defaultTries: number,
    defaultInterval: number | undefined,
  ): Promise<AsynchResult> {
    const settings = pollSettings(options, defaultTries, defaultInterval);
    checkRequestId(requestId);
    return operate(this.#begin, options, (context, signal) =>
      pollWithProgress(context, requestId, { ...settings, signal }, options.onProgress),
    );
  }
}

function pollWithProgress(
  context: Context,
  requestId: string,
  settings: PollSettings,
  listener: ProgressListener | undefined,
): Promise<AsynchResult> {
  return rethrowAs(pollErrorClass, requestId, async () => {
    const reporter = reporterFor(context, listener);
    try {
      return await pollResult(context, requestId, settings, reporter);
    } finally {
      reporter.end();
    }
  });
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
