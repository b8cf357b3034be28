import type { IncomingMessage } from 'node:http';
import {
  ASYNCH_LIMITS,
  type CompleteBody,
  type CompleteResult,
  type InitiateResult,
  plainEtag,
  type UploadStatus,
} from '@undertone/contract';
import { announcedBytes, type BodyLimits, type BodyTimeouts, bodyStream, receiveBody } from '../http/body.ts';
import { receiveFormFile } from '../http/form-file.ts';
import type { Metrics } from '../operators/metrics.ts';
import { ProblemError } from '../problems.ts';
import type { BlobStore, WrittenBlob } from '../stores/blob-store.ts';
import type { RequestStore } from '../stores/request-store.ts';
import { explainParts } from './explain-parts.ts';
import { type Making, makeRequest } from './new-request.ts';
import { type Incoming, PartReceiver } from './parts.ts';
import { notFound, ownRequest } from './requests.ts';

interface UploadOptions {
  readonly requests: RequestStore;
  readonly blobs: BlobStore;
  readonly metrics: Metrics;
  readonly timeouts: { readonly part: BodyTimeouts; readonly recording: BodyTimeouts };
  /** Bytes that one key may have stored. */
  readonly storageLimit: number;
  /** A recording is complete and waits for a worker. */
  readonly onQueued: () => void;
}

/** A whole recording in one call that says nothing for so long has broken off, or its server has. */
const UPLOAD_LEASE_MS = 60_000;

/** How a recording comes in: announced, part by part, completed; or all of it in one call. */
export class Uploads {
  readonly #options: UploadOptions;
  readonly #receiver: PartReceiver;

  constructor(options: UploadOptions) {
    this.#options = options;
    this.#receiver = new PartReceiver(options);
  }

  async initiate(making: Making, baseUrl: string): Promise<InitiateResult> {
    const { requests, blobs, metrics } = this.#options;
    const { request, isNew } = await makeRequest(requests, making);
    if (isNew) metrics.uploads.inc({ event: 'initiated' });
    return {
      request_id: request.id,
      upload_id: request.uploadId,
      presigned_urls: await blobs.uploadUrls({ ...request, baseUrl }, numbersTo(request.partCount)),
      expires_at: new Date(request.expiresAt).toISOString(),
    };
  }

  /** What has arrived, and where the rest goes. */
  async resume(owner: string, requestId: string, baseUrl: string): Promise<UploadStatus> {
    const { requests, blobs } = this.#options;
    const request = await ownRequest(requests, requestId, owner);
    const uploading = request.state === 'uploading';
    const arrived = (uploading && (await blobs.arrived?.(request.id))) || (await requests.parts(request.id));
    const there = new Set(arrived.map(({ number }) => number));
    const missing = uploading ? numbersTo(request.partCount).filter((number) => !there.has(number)) : [];
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

  addPart(
    requestId: string,
    number: number,
    body: IncomingMessage,
    contentMd5?: string,
  ): Promise<WrittenBlob> {
    const expected = contentMd5 === undefined ? null : readContentMd5(contentMd5);
    const limits = { ...this.#options.timeouts.part, maxBytes: ASYNCH_LIMITS.maxFileBytes };
    const incoming = {
      length: announcedBytes(body),
      open: (signal: AbortSignal) => bodyStream(body, limits, signal),
    };
    return this.#receiver.receive(requestId, number, incoming, expected);
  }

  /** uploading -> queued. Names the parts that are missing or wrong, and then leaves the upload open. */
  async complete(owner: string, { request_id, upload_id, parts }: CompleteBody): Promise<CompleteResult> {
    const { requests } = this.#options;
    const found = await ownRequest(requests, request_id, owner);
    if (found.uploadId !== upload_id) {
      throw new ProblemError('not_found', 'The upload_id is not that of this request_id.');
    }
    if (found.state === 'uploading') {
      const etags = new Map(parts.map(({ PartNumber, ETag }) => [PartNumber, plainEtag(ETag)]));
      await this.#receiver.recordArrived(found.id);
      const contradictory = parts.some(({ PartNumber, ETag }) => etags.get(PartNumber) !== plainEtag(ETag));
      if (!contradictory) await this.#queue(found.id, etags);
    }
    const { id, state } = await ownRequest(requests, found.id, owner);
    if (state === 'uploading') throw explainParts(found.partCount, parts, await requests.parts(id));
    return { request_id: id, status: state };
  }

  /** A whole recording in one call. Nothing is kept of one that breaks off. */
  async send(making: Making, body: IncomingMessage): Promise<CompleteResult> {
    const { requests, blobs, metrics } = this.#options;
    const limits = { ...this.#options.timeouts.recording, maxBytes: ASYNCH_LIMITS.maxFileBytes };
    const incoming = recordingIn(body, limits);
    const made = await makeRequest(requests, { ...making, uploadLeaseMs: UPLOAD_LEASE_MS });
    const { id, state } = made.request;
    if (!made.isNew) {
      // Many clients read the answer only when they have sent everything.
      await receiveBody(body, limits, () => undefined);
      return { request_id: id, status: state };
    }
    metrics.uploads.inc({ event: 'initiated' });
    const renewal = setInterval(() => {
      requests.renewUpload(id, { leaseMs: UPLOAD_LEASE_MS }).catch(() => undefined);
    }, UPLOAD_LEASE_MS / 4);
    try {
      const { etag } = await this.#receiver.receive(id, 1, incoming);
      if (!(await this.#queue(id, new Map([[1, etag]])))) throw notFound();
      return { request_id: id, status: 'queued' };
    } catch (error) {
      // What cannot be erased now is erased by the sweep when the lease has run out.
      const erase = async () => {
        await requests.delete(id, making.owner);
        await blobs.eraseGroup(id);
      };
      await erase().catch(() => undefined);
      throw error;
    } finally {
      clearInterval(renewal);
    }
  }

  async #queue(requestId: string, etags: ReadonlyMap<number, string>): Promise<boolean> {
    const { requests, metrics, onQueued } = this.#options;
    if (!(await requests.complete(requestId, etags))) return false;
    metrics.uploads.inc({ event: 'completed' });
    onQueued();
    return true;
  }
}

/** The other parts of a form, their headers and boundaries. */
const FORM_OVERHEAD_BYTES = 64 * 1024;

/** The body as it is, or the part named file of a form. */
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
  // How much of a form is the file nobody knows beforehand.
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
    throw new ProblemError('bad_request', 'Content-MD5 must be the base64 of the 16 bytes of an MD5.');
  }
  return bytes.toString('hex');
}
