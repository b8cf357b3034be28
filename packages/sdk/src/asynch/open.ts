import {
  ASYNCH_LIMITS,
  ASYNCH_PATHS,
  IDEMPOTENCY_KEY_HEADER,
  type InitiateResult,
  plainEtag,
  type UploadStatus,
} from '@undertone/contract';
import { failingAs, RequestFailedError } from '../errors.ts';
import { type Context, readJson } from '../http.ts';
import type { AudioSource } from '../platform/platform.ts';
import { tooLarge } from '../source.ts';
import type { RecordingOptions } from '../types.ts';
import { joinUrl, type Query, withoutQuery } from '../urls.ts';
import type { Part } from './part.ts';
import { errorOfRequest } from './poll.ts';

type StoredPart = UploadStatus['parts'][number];

export interface UploadSettings {
  readonly recording: RecordingOptions;
  readonly partSize: number;
  readonly maxRetries: number;
  readonly resume: string | undefined;
  readonly signal: AbortSignal | undefined;
}

/** Where parts go, by their numbers, and until when, in milliseconds since 1970. */
export type Addresses = ReadonlyMap<number, { readonly url: string; readonly expiresAt: number }>;

/** An upload that the service knows: its parts, and what is needed to send and complete them. */
export interface OpenUpload {
  readonly requestId: string;
  readonly uploadId: string;
  readonly parts: readonly Part[];
  /** Where the parts go that are still to be sent. */
  readonly urls: Addresses;
  /** The ETags of the parts that have arrived before. */
  readonly etags: ReadonlyMap<number, string>;
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

/** What is said about a recording, as the service's query has it. */
export function recordingQuery(name: string, options: RecordingOptions): Query {
  const { model, intervalSeconds, channels, label, webhookUrl } = options;
  return { file_name: name, model, interval: intervalSeconds, channels, label, webhook_url: webhookUrl };
}

/** With the same key a call that is made again, because its answer was lost, is the same request. */
export function idempotencyKey(): Record<string, string> {
  // Pages without https have no randomUUID. The key is only compared with others of the same caller.
  const random = () => Math.random().toString(36).slice(2);
  return {
    [IDEMPOTENCY_KEY_HEADER]: globalThis.crypto?.randomUUID?.() ?? `${random()}${random()}${random()}`,
  };
}

/** Begins an upload. */
export async function initiate(
  context: Context,
  source: AudioSource,
  { recording, partSize, signal }: UploadSettings,
): Promise<OpenUpload> {
  const parts = planParts(source.size, partSize);
  const { asynchUrl } = context.config;
  const query = { part_count: parts.length, ...recordingQuery(source.name, recording) };
  const url = joinUrl(asynchUrl, ASYNCH_PATHS.initiate, query);
  const headers = idempotencyKey();
  const answer = await context.callWithRetries('Starting the upload', {
    method: 'POST',
    url,
    headers,
    signal,
  });
  const { request_id, upload_id, presigned_urls } = readJson<InitiateResult>(
    answer,
    withoutQuery(url),
    ({ request_id, upload_id, presigned_urls }) =>
      typeof request_id === 'string' &&
      typeof upload_id === 'string' &&
      Array.isArray(presigned_urls) &&
      presigned_urls.length === parts.length,
  );
  const urls = addresses(presigned_urls, asynchUrl);
  return { requestId: request_id, uploadId: upload_id, parts, urls, etags: new Map() };
}

function addresses(presigned: InitiateResult['presigned_urls'], asynchUrl: string): Addresses {
  return new Map(
    presigned.map(({ part_number, url, expires_at = '' }) => {
      const expiresAt = Date.parse(expires_at) || Number.POSITIVE_INFINITY;
      return [part_number, { url: new URL(url, asynchUrl).href, expiresAt }];
    }),
  );
}

/** New addresses of the parts that have not arrived: those of some stores work for an hour alone. */
export async function renewAddresses(
  context: Context,
  requestId: string,
  signal: AbortSignal,
): Promise<Addresses> {
  const { presigned_urls } = await askWhatArrived(context, requestId, signal);
  return addresses(presigned_urls, context.config.asynchUrl);
}

/** Takes up an interrupted upload. Undefined: all of it has arrived, and it was completed. */
export async function continueUpload(
  context: Context,
  source: AudioSource,
  requestId: string,
  { partSize, signal }: UploadSettings,
): Promise<OpenUpload | undefined> {
  const known = await failingAs(errorOfRequest, requestId, () => askWhatArrived(context, requestId, signal));
  if (known.status !== 'uploading') return undefined;
  const original = originalPartSize(source.size, known, partSize);
  if (Math.ceil(source.size / original) !== known.part_count) throw otherRecording(requestId);
  const parts = planParts(source.size, original);
  for (const stored of known.parts) {
    if (!(await isOf(context, source, parts[stored.PartNumber - 1], stored))) throw otherRecording(requestId);
  }
  context.log.info(`Request ${requestId}: ${known.parts.length} of ${parts.length} parts are there already.`);
  return {
    requestId,
    uploadId: known.upload_id,
    parts,
    urls: addresses(known.presigned_urls, context.config.asynchUrl),
    etags: new Map(known.parts.map(({ PartNumber, ETag }) => [PartNumber, ETag])),
  };
}

async function askWhatArrived(
  context: Context,
  requestId: string,
  signal: AbortSignal | undefined,
): Promise<UploadStatus> {
  const url = joinUrl(context.config.asynchUrl, `${ASYNCH_PATHS.upload}/${requestId}`);
  const answer = await context.callWithRetries('Asking what has arrived', { method: 'GET', url, signal });
  return readJson<UploadStatus>(
    answer,
    withoutQuery(url),
    ({ upload_id, status, part_count, parts, presigned_urls }) =>
      typeof upload_id === 'string' &&
      typeof status === 'string' &&
      typeof part_count === 'number' &&
      Array.isArray(parts) &&
      Array.isArray(presigned_urls),
  );
}

/** The size the recording was cut by, as what has arrived tells it. */
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

async function isOf(
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
    'What has arrived is not a part of this recording. Give the same file, or upload this one without resume.',
    { code: 'other_recording', requestId },
  );
}
