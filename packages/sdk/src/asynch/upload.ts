import { ASYNCH_LIMITS, ASYNCH_PATHS, type CompleteResult, type InitiateResult } from '@undertone/contract';
import { failingAs, RequestFailedError, UploadFailedError } from '../errors.ts';
import { type Context, readJson } from '../http.ts';
import type { Reporter } from '../progress.ts';
import { type AudioSource, PiecePool, tooLarge } from '../source.ts';
import type { ModelId } from '../types.ts';
import { joinUrl, withoutQuery } from '../urls.ts';
import { type Part, sendPart } from './part.ts';

/** A cancelled upload may cost the caller this much more time, no longer. */
const CANCEL_TIMEOUT_MS = 5_000;

export interface UploadSettings {
  readonly partSize: number;
  readonly maxRetries: number;
  readonly model: ModelId | undefined;
  readonly intervalSeconds: number | undefined;
  readonly signal: AbortSignal | undefined;
}

/**
 * Asks for addresses, sends the parts side by side, and has the service put them together. When that
 * fails the request is deleted. Returns the request's identifier.
 */
export async function uploadSource(
  context: Context,
  source: AudioSource,
  settings: UploadSettings,
  reporter: Reporter,
): Promise<string> {
  const parts = planParts(source.size, settings.partSize);
  const initiated = await initiate(context, source, parts.length, settings);
  const requestId = initiated.request_id;
  try {
    return await failingAs(
      () => UploadFailedError,
      requestId,
      async () => {
        const upload = new Upload(context, source, initiated, settings, reporter);
        await upload.send(parts);
        await upload.complete(parts);
        context.log.info(`Request ${requestId}: ${parts.length} parts sent.`);
        return requestId;
      },
    );
  } catch (error) {
    await cancel(context, requestId);
    throw error;
  }
}

/**
 * Cuts a recording into parts of `partSize` bytes; the last one is what is left. The smallest part the
 * checks let through makes 1,024 parts of the largest file, far below what the service takes.
 */
export function planParts(size: number, partSize: number): Part[] {
  if (size === 0) throw new RequestFailedError('The recording is empty.', { code: 'audio_too_short' });
  if (size > ASYNCH_LIMITS.maxFileBytes) throw tooLarge(ASYNCH_LIMITS.maxFileBytes);
  return Array.from({ length: Math.ceil(size / partSize) }, (_, index) => ({
    number: index + 1,
    start: index * partSize,
    end: Math.min((index + 1) * partSize, size),
  }));
}

async function initiate(
  context: Context,
  source: AudioSource,
  count: number,
  { model, intervalSeconds, signal }: UploadSettings,
): Promise<InitiateResult> {
  const url = joinUrl(context.config.asynchUrl, ASYNCH_PATHS.initiate, {
    file_name: source.name,
    part_count: count,
    model,
    interval: intervalSeconds,
  });
  const answer = await context.callWithRetries('Starting the upload', { method: 'POST', url, signal });
  return readJson<InitiateResult>(
    answer,
    withoutQuery(url),
    ({ request_id, upload_id, presigned_urls }) =>
      typeof request_id === 'string' &&
      typeof upload_id === 'string' &&
      Array.isArray(presigned_urls) &&
      presigned_urls.length === count,
  );
}

/** An upload that has been initiated: sends parts, a few at a time, keeps their MD5s, and completes. */
class Upload {
  readonly #context: Context;
  readonly #source: AudioSource;
  readonly #initiated: InitiateResult;
  readonly #settings: UploadSettings;
  readonly #reporter: Reporter;
  readonly #md5s = new Map<number, string>();
  readonly #sent = new Map<number, number>();
  readonly #pool = new PiecePool();
  #sentBytes = 0;

  constructor(
    context: Context,
    source: AudioSource,
    initiated: InitiateResult,
    settings: UploadSettings,
    reporter: Reporter,
  ) {
    this.#context = context;
    this.#source = source;
    this.#initiated = initiated;
    this.#settings = settings;
    this.#reporter = reporter;
  }

  /** The first part that cannot be sent stops the others. */
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

  /** Parts that the service names as missing or wrong are sent once more, and it is asked again. */
  async complete(parts: readonly Part[]): Promise<void> {
    const { maxRetries } = this.#settings;
    for (let round = 0; ; round++) {
      try {
        await this.#askToComplete();
        return;
      } catch (error) {
        const named = namedParts(error);
        const again = parts.filter((part) => named.has(part.number));
        if (again.length === 0 || round >= maxRetries) throw error;
        this.#context.log.warn(`Parts ${[...named].join(', ')} did not arrive complete: sending them again.`);
        await this.send(again);
      }
    }
  }

  async #askToComplete(): Promise<void> {
    const { request_id, upload_id } = this.#initiated;
    const parts = [...this.#md5s]
      .sort(([a], [b]) => a - b)
      .map(([number, md5]) => ({ PartNumber: number, ETag: `"${md5}"` }));
    const url = joinUrl(this.#context.config.asynchUrl, ASYNCH_PATHS.complete);
    const answer = await this.#context.callWithRetries('Completing the upload', {
      method: 'POST',
      url,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ request_id, upload_id, parts }),
      signal: this.#settings.signal,
    });
    readJson<CompleteResult>(answer, withoutQuery(url), ({ status }) => typeof status === 'string');
  }

  async #sendPart(part: Part, signal: AbortSignal): Promise<void> {
    const presigned = this.#initiated.presigned_urls.find((entry) => entry.part_number === part.number);
    if (presigned === undefined) {
      const details = { code: 'invalid_answer' };
      throw new RequestFailedError(`The service gave no address for part ${part.number}.`, details);
    }
    const md5 = await sendPart(this.#context, {
      source: this.#source,
      part,
      url: new URL(presigned.url, this.#context.config.asynchUrl).href,
      maxRetries: this.#settings.maxRetries,
      signal,
      pool: this.#pool,
      onSent: (bytes) => this.#report(part, bytes),
    });
    this.#md5s.set(part.number, md5);
  }

  #report(part: Part, bytes: number): void {
    this.#sentBytes += bytes - (this.#sent.get(part.number) ?? 0);
    this.#sent.set(part.number, bytes);
    const sentBytes = this.#sentBytes;
    const totalBytes = this.#source.size;
    this.#reporter.report({
      status: 'uploading',
      progress: sentBytes / totalBytes,
      requestId: this.#initiated.request_id,
      sentBytes,
      totalBytes,
    });
  }
}

function namedParts(error: unknown): Set<number> {
  const problem = error instanceof RequestFailedError ? error.problem : undefined;
  return new Set([...(problem?.missing_parts ?? []), ...(problem?.wrong_parts ?? [])]);
}

/** As far as possible: the request expires by itself in any case. */
async function cancel(context: Context, requestId: string): Promise<void> {
  const url = joinUrl(context.config.asynchUrl, `${ASYNCH_PATHS.requests}/${requestId}`);
  try {
    await context.call({ method: 'DELETE', url, timeout: AbortSignal.timeout(CANCEL_TIMEOUT_MS) });
  } catch (error) {
    context.log.warn(`Request ${requestId} could not be cancelled: ${(error as Error).message}`);
  }
}
