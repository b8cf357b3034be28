import {
  ASYNCH_LIMITS,
  ASYNCH_PATHS,
  IDEMPOTENCY_KEY_HEADER,
  type InitiateResult,
  plainEtag,
  type UploadStatus,
} from '@undertone/contract';
import { untilAborted } from '../abort.ts';
import { RequestFailedError, rethrowAs } from '../errors.ts';
import { type Context, readJson } from '../http.ts';
import type { AudioSource } from '../platform/platform.ts';
import { tooLarge } from '../source.ts';
import type { RecordingOptions } from '../types.ts';
import { joinUrl, type Query, withoutQuery } from '../urls.ts';
import type { Part } from './part.ts';
import { requestErrorClass } from './poll.ts';

type StoredPart = UploadStatus['parts'][number];

export interface UploadSettings {
  readonly recording: RecordingOptions;
  readonly partSize: number;
  readonly maxRetries: number;
  readonly resume: string | undefined;
  readonly signal: AbortSignal | undefined;
}

/** Presigned URLs by part number; `expiresAt` is in milliseconds since 1970. */
export type PartUrls = ReadonlyMap<number, { readonly url: string; readonly expiresAt: number }>;

/** An upload on the server: its parts and what is needed to send and complete them. */
export interface OpenUpload {
  readonly requestId: string;
  readonly uploadId: string;
  readonly parts: readonly Part[];
  /** Where to send the missing parts. */
  readonly urls: PartUrls;
  /** The ETags of the parts that the server already has. */
  readonly etags: ReadonlyMap<number, string>;
}

/**
 * Splits a recording into parts of `partSize` bytes, with a shorter last one. The minimum part size makes at most 1,024
 * parts, far below the limit.
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

export function recordingQuery(name: string, options: RecordingOptions): Query {
  const { model, intervalSeconds, channels, label, webhookUrl } = options;
  return { file_name: name, model, interval: intervalSeconds, channels, label, webhook_url: webhookUrl };
}

/** A retried call with the same key does not create a second request. */
export function idempotencyKey(): Record<string, string> {
  // Pages without https have no randomUUID. The key only has to be unique for this caller.
  const random = () => Math.random().toString(36).slice(2);
  return {
    [IDEMPOTENCY_KEY_HEADER]: globalThis.crypto?.randomUUID?.() ?? `${random()}${random()}${random()}`,
  };
}

export async function initiate(
  context: Context,
  source: AudioSource,
  { recording, partSize, signal }: UploadSettings,
): Promise<OpenUpload> {
  const parts = planParts(source.size, partSize);
  const { asynchUrl } = context.config;
  const query = {
    part_count: parts.length,
    file_size: source.size,
    ...recordingQuery(source.name, recording),
  };
  const url = joinUrl(asynchUrl, ASYNCH_PATHS.initiate, query);
  const headers = idempotencyKey();
  const response = await context.callWithRetries('Starting the upload', {
    method: 'POST',
    url,
    headers,
    signal,
  });
  const { request_id, upload_id, presigned_urls } = readJson<InitiateResult>(
    response,
    withoutQuery(url),
    ({ request_id, upload_id, presigned_urls }) =>
      typeof request_id === 'string' &&
      typeof upload_id === 'string' &&
      Array.isArray(presigned_urls) &&
      presigned_urls.length === parts.length,
  );
  const urls = partUrls(presigned_urls, asynchUrl);
  return { requestId: request_id, uploadId: upload_id, parts, urls, etags: new Map() };
}

function partUrls(presigned: InitiateResult['presigned_urls'], asynchUrl: string): PartUrls {
  return new Map(
    presigned.map(({ part_number, url, expires_at = '' }) => {
      const expiresAt = Date.parse(expires_at) || Number.POSITIVE_INFINITY;
      return [part_number, { url: new URL(url, asynchUrl).href, expiresAt }];
    }),
  );
}

/** New URLs for the missing parts: those of some stores expire after an hour. */
export async function renewUrls(context: Context, requestId: string, signal: AbortSignal): Promise<PartUrls> {
  const { presigned_urls } = await uploadStatus(context, requestId, signal);
  return partUrls(presigned_urls, context.config.asynchUrl);
}

/** Resumes an interrupted upload. Undefined if it was already completed. */
export async function continueUpload(
  context: Context,
  source: AudioSource,
  requestId: string,
  { partSize, signal }: UploadSettings,
): Promise<OpenUpload | undefined> {
  const known = await rethrowAs(requestErrorClass, requestId, () => uploadStatus(context, requestId, signal));
  if (known.status !== 'uploading') return undefined;
  const original = originalPartSize(source.size, known, partSize);
  if (Math.ceil(source.size / original) !== known.part_count) throw otherRecording(requestId);
  const parts = planParts(source.size, original);
  for (const stored of known.parts) {
    const isSame = matches(context, source, parts[stored.PartNumber - 1], stored);
    if (!(await untilAborted(isSame, signal))) throw otherRecording(requestId);
  }
  context.log.info(
    `Request ${requestId}: ${known.parts.length} of ${parts.length} parts are already uploaded.`,
  );
  return {
    requestId,
    uploadId: known.upload_id,
    parts,
    urls: partUrls(known.presigned_urls, context.config.asynchUrl),
    etags: new Map(known.parts.map(({ PartNumber, ETag }) => [PartNumber, ETag])),
  };
}

async function uploadStatus(
  context: Context,
  requestId: string,
  signal: AbortSignal | undefined,
): Promise<UploadStatus> {
  const url = joinUrl(context.config.asynchUrl, `${ASYNCH_PATHS.upload}/${requestId}`);
  const response = await context.callWithRetries('Fetching the upload status', {
    method: 'GET',
    url,
    signal,
  });
  return readJson<UploadStatus>(
    response,
    withoutQuery(url),
    ({ upload_id, status, part_count, parts, presigned_urls }) =>
      typeof upload_id === 'string' &&
      typeof status === 'string' &&
      typeof part_count === 'number' &&
      Array.isArray(parts) &&
      Array.isArray(presigned_urls),
  );
}

/** The part size of an interrupted upload, derived from the parts received. */
export function originalPartSize(
  size: number,
  { part_count, parts }: Pick<UploadStatus, 'part_count' | 'parts'>,
  preferred: number,
): number {
  const whole = parts.find(({ PartNumber }) => PartNumber < part_count);
  if (whole) return Math.max(1, whole.bytes);
  const [last] = parts;
  if (last && part_count > 1) return Math.max(1, Math.floor((size - last.bytes) / (part_count - 1)));
  return Math.ceil(size / preferred) === part_count ? preferred : Math.max(1, Math.ceil(size / part_count));
}

async function matches(
  context: Context,
  source: AudioSource,
  part: Part | undefined,
  stored: StoredPart,
): Promise<boolean> {
  if (part === undefined || part.end - part.start !== stored.bytes) return false;
  const md5 = context.platform.md5();
  for await (const piece of source.read(part.start, part.end)) md5.update(piece);
  return plainEtag(stored.ETag) === md5.hex();
}

function otherRecording(requestId: string): RequestFailedError {
  return new RequestFailedError(
    'The uploaded parts do not match this recording. Pass the same file, or upload this one without resume.',
    { code: 'other_recording', requestId },
  );
}
