import { ASYNCH_PATHS, type CompleteResult } from '@undertone/contract';
import { RequestFailedError, rethrowAs, UploadFailedError } from '../errors.ts';
import { type Context, readJson } from '../http.ts';
import type { AudioSource } from '../platform/platform.ts';
import type { Reporter } from '../progress.ts';
import { ASYNCH_RETRIES, isRetryable } from '../retry.ts';
import { PiecePool } from '../source.ts';
import { joinUrl, withoutQuery } from '../urls.ts';
import {
  continueUpload,
  initiate,
  type OpenUpload,
  type PartUrls,
  renewUrls,
  type UploadSettings,
} from './open.ts';
import { type Part, sendPart } from './part.ts';

/** A URL that expires sooner than this is renewed before use. */
const URL_MARGIN_MS = 60_000;

/** Time limit for deleting a failed upload. */
const CANCEL_TIMEOUT_MS = 5_000;

/**
 * Gets presigned URLs, sends the parts concurrently and completes the upload. Returns the request ID. An interrupted
 * upload stays on the server to be resumed; one that can never succeed is deleted.
 */
export async function uploadSource(
  context: Context,
  source: AudioSource,
  settings: UploadSettings,
  reporter: Reporter,
): Promise<string> {
  const { resume } = settings;
  const opened =
    resume === undefined
      ? await initiate(context, source, settings)
      : await continueUpload(context, source, resume, settings);
  if (opened === undefined) return resume as string;
  const { requestId } = opened;
  try {
    const upload = new Upload(context, source, opened, settings, reporter);
    await upload.send(opened.parts.filter(({ number }) => !opened.etags.has(number)));
    await upload.complete();
    context.log.info(`Request ${requestId}: ${opened.parts.length} parts sent.`);
    return requestId;
  } catch (error) {
    await cleanUp(context, requestId, settings.signal?.aborted ?? false, error);
    return rethrowAs(
      () => UploadFailedError,
      requestId,
      async () => {
        throw error;
      },
    );
  }
}

class Upload {
  readonly #context: Context;
  readonly #source: AudioSource;
  readonly #opened: OpenUpload;
  readonly #settings: UploadSettings;
  readonly #reporter: Reporter;
  readonly #etags: Map<number, string>;
  #urls: PartUrls;
  readonly #sent = new Map<number, number>();
  readonly #pool = new PiecePool();
  #sentBytes = 0;

  constructor(
    context: Context,
    source: AudioSource,
    opened: OpenUpload,
    settings: UploadSettings,
    reporter: Reporter,
  ) {
    this.#context = context;
    this.#source = source;
    this.#opened = opened;
    this.#settings = settings;
    this.#reporter = reporter;
    this.#etags = new Map(opened.etags);
    this.#urls = opened.urls;
    for (const part of opened.parts) {
      if (opened.etags.has(part.number)) this.#count(part, part.end - part.start);
    }
    if (this.#sentBytes > 0) this.#report();
  }

  /** The first part that fails stops the others. */
  async send(parts: readonly Part[]): Promise<void> {
    const stop = new AbortController();
    const { signal } = this.#settings;
    const either = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;
    const waiting = parts.values();
    const sendNext = async () => {
      for (const part of waiting) await this.#sendPart(part, either);
    };
    const senders = Array.from({ length: Math.min(this.#context.config.maxThreads, parts.length) }, () =>
      sendNext().catch((error: unknown) => {
        stop.abort(error);
      }),
    );
    await Promise.all(senders);
    signal?.throwIfAborted();
    stop.signal.throwIfAborted();
  }

  /** Resends the parts that the server reports as missing or wrong. */
  async complete(): Promise<void> {
    const { maxRetries } = this.#settings;
    for (let round = 0; ; round++) {
      try {
        await this.#callComplete();
        return;
      } catch (error) {
        const reported = reportedParts(error);
        const again = this.#opened.parts.filter((part) => reported.has(part.number));
        if (again.length === 0 || round >= maxRetries) throw error;
        this.#context.log.warn(
          `Parts ${[...reported].join(', ')} are missing or corrupted: sending them again.`,
        );
        await this.send(again);
      }
    }
  }

  async #callComplete(): Promise<void> {
    const { requestId: request_id, uploadId: upload_id } = this.#opened;
    const parts = [...this.#etags]
      .sort(([a], [b]) => a - b)
      .map(([number, etag]) => ({ PartNumber: number, ETag: etag }));
    const url = joinUrl(this.#context.config.asynchUrl, ASYNCH_PATHS.complete);
    const response = await this.#context.callWithRetries('Completing the upload', {
      method: 'POST',
      url,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ request_id, upload_id, parts }),
      signal: this.#settings.signal,
    });
    readJson<CompleteResult>(response, withoutQuery(url), ({ status }) => typeof status === 'string');
  }

  async #sendPart(part: Part, signal: AbortSignal): Promise<void> {
    const url = await this.#urlOf(part, signal);
    const { etag } = await sendPart(this.#context, {
      source: this.#source,
      part,
      url,
      maxRetries: this.#settings.maxRetries,
      signal,
      pool: this.#pool,
      onSent: (bytes) => {
        this.#count(part, bytes);
        this.#report();
      },
    });
    this.#etags.set(part.number, etag);
  }

  async #urlOf({ number }: Part, signal: AbortSignal): Promise<string> {
    const soon = Date.now() + URL_MARGIN_MS;
    if ((this.#urls.get(number)?.expiresAt ?? 0) < soon) {
      this.#urls = await renewUrls(this.#context, this.#opened.requestId, signal);
    }
    const target = this.#urls.get(number);
    if (target !== undefined) return target.url;
    const details = { code: 'invalid_answer' } as const;
    throw new RequestFailedError(`The server sent no URL for part ${number}.`, details);
  }

  #count(part: Part, bytes: number): void {
    this.#sentBytes += bytes - (this.#sent.get(part.number) ?? 0);
    this.#sent.set(part.number, bytes);
  }

  #report(): void {
    const sentBytes = this.#sentBytes;
    const totalBytes = this.#source.size;
    this.#reporter.report({
      status: 'uploading',
      progress: sentBytes / totalBytes,
      requestId: this.#opened.requestId,
      sentBytes,
      totalBytes,
    });
  }
}

function reportedParts(error: unknown): Set<number> {
  const problem = error instanceof RequestFailedError ? error.problem : undefined;
  return new Set([...(problem?.missing_parts ?? []), ...(problem?.wrong_parts ?? [])]);
}

/** Keeps an upload that can be resumed; tries to delete one that can never succeed. */
async function cleanUp(context: Context, requestId: string, aborted: boolean, error: unknown): Promise<void> {
  if (aborted || (error instanceof RequestFailedError && isRetryable(error, ASYNCH_RETRIES))) {
    context.log.info(
      `The upload was interrupted. Continue it within 24 hours with resume: '${requestId}', or delete it with asynch.delete.`,
    );
    return;
  }
  const url = joinUrl(context.config.asynchUrl, `${ASYNCH_PATHS.requests}/${requestId}`);
  try {
    await context.call({ method: 'DELETE', url, timeout: AbortSignal.timeout(CANCEL_TIMEOUT_MS) });
  } catch (failure) {
    context.log.warn(`Request ${requestId} could not be deleted: ${(failure as Error).message}`);
  }
}
