import type { IncomingMessage } from 'node:http';
import {
  ASYNCH_LIMITS,
  type CompleteBody,
  type CompleteResult,
  type InitiateResult,
  plainEtag,
  type UploadStatus,
} from '@undertone/contract';
import type { HeldBytes } from '../held-bytes.ts';
import { announcedBytes, type BodyLimits, type BodyTimeouts, bodyStream, receiveBody } from '../http/body.ts';
import { receiveFormFile } from '../http/form-file.ts';
import type { Metrics } from '../operators/metrics.ts';
import { ProblemError, retryLater } from '../problems.ts';
import type { BlobStore, WrittenBlob } from '../stores/blobs.ts';
import type { Caller, Part, RequestStore } from '../stores/contracts.ts';
import type { KeyLimits } from '../stores/key-limits.ts';
import { explainParts } from './explain-parts.ts';
import { type CreateCommand, createRequest } from './new-request.ts';
import { type Incoming, PartReceiver } from './parts.ts';
import { notFound, ownRequest, requireLiving } from './requests.ts';

interface UploadOptions {
  readonly requests: RequestStore;
  readonly blobs: BlobStore;
  readonly metrics: Metrics;
  readonly timeouts: { readonly part: BodyTimeouts; readonly recording: BodyTimeouts };
  /** Bytes that an owner may have stored, if it has no limit of its own; 0 is no limit. */
  readonly storageLimit: number;
  /** The owner of SERVICE_API_KEY, which no store knows. */
  readonly isEnvironmentOwner: (owner: string) => boolean;
  /** Memory for recordings on their way to the blob store. */
  readonly held: HeldBytes;
  /** A recording is complete and ready for a worker. */
  readonly onQueued: () => void;
}

/** A whole recording in one call whose lease is not renewed for this long was interrupted, or its server died. */
const UPLOAD_LEASE_MS = 60_000;

/** Uploads: initiate, parts, complete; or a whole recording in one call. */
export class Uploads {
  readonly #options: UploadOptions;
  readonly #receiver: PartReceiver;

  constructor(options: UploadOptions) {
    this.#options = options;
    this.#receiver = new PartReceiver(options);
  }

  async initiate(command: CreateCommand, baseUrl: string): Promise<InitiateResult> {
    const { requests, blobs, metrics } = this.#options;
    const { request, isNew } = await createRequest(requests, command);
    if (isNew) metrics.uploads.inc({ event: 'initiated' });
    else await this.#noteUrls(request.id);
    return {
      request_id: request.id,
      upload_id: request.uploadId,
      presigned_urls: await blobs.uploadUrls({ ...request, baseUrl }, numbersTo(request.partCount)),
      expires_at: new Date(request.expiresAt).toISOString(),
    };
  }

  /** The parts that have arrived, and upload URLs for the others. */
  async resume(owner: string, requestId: string, baseUrl: string): Promise<UploadStatus> {
    const { requests, blobs } = this.#options;
    const request = await ownRequest(requests, requestId, owner);
    const uploading = request.state === 'uploading';
    const arrived = (uploading && (await blobs.arrived?.(request.id))) || (await requests.parts(request.id));
    const numbers = new Set(arrived.map(({ number }) => number));
    const missing = uploading ? numbersTo(request.partCount).filter((number) => !numbers.has(number)) : [];
    if (missing.length > 0) await this.#noteUrls(request.id);
    return {
      request_id: request.id,
      upload_id: request.uploadId,
      status: request.state,
      part_count: request.partCount,
      parts: arrived
        .toSorted((a, b) => a.number - b.number)
        .map(({ number, etag, bytes }) => ({ PartNumber: number, ETag: `"${etag}"`, bytes })),
      presigned_urls: await blobs.uploadUrls({ ...request, baseUrl }, missing),
      expires_at: new Date(request.expiresAt).toISOString(),
    };
  }

  /** URLs of our own end with their request; those of the blob store do not. */
  async #noteUrls(requestId: string): Promise<void> {
    const { requests, blobs } = this.#options;
    if (blobs.arrived !== undefined) await requests.noteUrls(requestId);
  }

  /** `onOwner` is called before the body is read. */
  addPart(
    requestId: string,
    number: number,
    body: IncomingMessage,
    onOwner: (owner: string) => void,
    contentMd5?: string,
  ): Promise<WrittenBlob> {
    const expected = contentMd5 === undefined ? null : readContentMd5(contentMd5);
    const limits = { ...this.#options.timeouts.part, maxBytes: ASYNCH_LIMITS.maxFileBytes };
    const incoming = {
      length: announcedBytes(body),
      onOwner,
      open: (signal: AbortSignal) => bodyStream(body, limits, signal),
    };
    return this.#receiver.receive(requestId, number, incoming, expected);
  }

  /** uploading -> queued, in two store calls. If parts are missing or wrong, names them and leaves the upload open. */
  async complete(
    { owner, limits }: Pick<Caller, 'owner' | 'limits'>,
    { request_id, upload_id, parts }: CompleteBody,
  ): Promise<CompleteResult> {
    const { requests, blobs } = this.#options;
    const found = await ownRequest(requests, request_id, owner);
    if (found.uploadId !== upload_id) {
      throw new ProblemError('not_found', 'The upload_id is not that of this request_id.');
    }
    if (found.state !== 'uploading') return { request_id: found.id, status: found.state };
    const etags = new Map(parts.map(({ PartNumber, ETag }) => [PartNumber, plainEtag(ETag)]));
    const isContradictory = parts.some(({ PartNumber, ETag }) => etags.get(PartNumber) !== plainEtag(ETag));
    const arrived = await blobs.arrived?.(found.id);
    // An empty map completes nothing; the answer then has the parts.
    const answer = await this.#queue(found.id, isContradictory ? new Map() : etags, limits, arrived);
    const { id, state } = requireLiving(answer.request);
    if (state === 'uploading') throw explainParts(found.partCount, parts, answer.parts);
    return { request_id: id, status: state };
  }

  /** A whole recording in one call. An interrupted one leaves nothing behind. */
  async send(command: CreateCommand, body: IncomingMessage): Promise<CompleteResult> {
    const { blobs, held, timeouts } = this.#options;
    const limits = { ...timeouts.recording, maxBytes: ASYNCH_LIMITS.maxFileBytes };
    const incoming = recordingIn(body, limits);
    const buffer = held.hold(command.owner);
    // Before a byte is read.
    if (!buffer.resize(Math.min(blobs.bufferBytes ?? 0, incoming.length ?? limits.maxBytes)))
      throw tooManyAtOnce();
    try {
      return await this.#receive(command, body, incoming, limits);
    } finally {
      buffer.release();
    }
  }

  async #receive(
    command: CreateCommand,
    body: IncomingMessage,
    incoming: Incoming,
    limits: BodyLimits,
  ): Promise<CompleteResult> {
    const { requests, blobs, metrics } = this.#options;
    const { request, isNew } = await createRequest(requests, { ...command, uploadLeaseMs: UPLOAD_LEASE_MS });
    const { id, state } = request;
    if (!isNew) {
      // Many clients read the answer only after sending everything.
      await receiveBody(body, limits, () => undefined);
      return { request_id: id, status: state };
    }
    metrics.uploads.inc({ event: 'initiated' });
    const renewal = setInterval(() => {
      // While the store is unavailable: if the lease expires meanwhile, the sweep deletes the request and this call fails.
      requests.renewUpload(id, { leaseMs: UPLOAD_LEASE_MS }).catch(() => undefined);
    }, UPLOAD_LEASE_MS / 4);
    try {
      const { etag } = await this.#receiver.receive(id, 1, incoming);
      // Its place in the queue was reserved when it was created.
      const reserved = { ...command.limits, queued: 0 };
      if (!(await this.#queue(id, new Map([[1, etag]]), reserved)).queued) throw notFound();
      return { request_id: id, status: 'queued' };
    } catch (error) {
      // What cannot be erased now is erased by the sweep once the lease has expired.
      const erase = async () => {
        await requests.delete(id, command.owner);
        await blobs.eraseGroup(id);
      };
      await erase().catch(() => undefined);
      throw error;
    } finally {
      clearInterval(renewal);
    }
  }

  async #queue(
    requestId: string,
    etags: ReadonlyMap<number, string>,
    limits: KeyLimits,
    arrived?: readonly Part[],
  ) {
    const answer = await this.#receiver.complete(requestId, etags, arrived, limits);
    if (answer.queued) {
      this.#options.metrics.uploads.inc({ event: 'completed' });
      this.#options.onQueued();
    }
    return answer;
  }
}

function tooManyAtOnce(): ProblemError {
  const detail =
    'Too many recordings are arriving at the same time. Try again in 5 seconds, or upload in parts.';
  return retryLater('overloaded', detail, 5);
}

/** The other fields of a form, headers and boundaries. */
const FORM_OVERHEAD_BYTES = 64 * 1024;

/** The raw body, or the field named file of a form. */
function recordingIn(body: IncomingMessage, limits: BodyLimits): Incoming {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = body.headers;
  if (encoding !== 'identity' || /^application\/json\b/i.test(type)) {
    throw new ProblemError(
      'unsupported_media_type',
      'Send the recording itself, as `curl -X POST -T call.wav` does, or as the part named file of a form.',
    );
  }
  if (!/^multipart\/form-data\b/i.test(type)) {
    return { length: announcedBytes(body), open: (signal) => bodyStream(body, limits, signal) };
  }
  const maxBytes = limits.maxBytes + FORM_OVERHEAD_BYTES;
  // The size of the file within a form is not known beforehand.
  return {
    length: undefined,
    open: (signal) => bodyStream(body, { ...limits, maxBytes }, signal, receiveFormFile),
  };
}

function numbersTo(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i + 1);
}

function readContentMd5(header: string): string {
  const bytes = Buffer.from(header, 'base64');
  if (bytes.length !== 16) {
    throw new ProblemError('bad_request', 'Content-MD5 must be the base64 encoding of a 16-byte MD5.');
  }
  return bytes.toString('hex');
}
