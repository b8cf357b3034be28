import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import {
  ASYNCH_LIMITS,
  type CompleteBody,
  type CompleteResult,
  DEFAULT_MODEL,
  INTERVAL_SECONDS,
  type InitiateQuery,
  type InitiateResult,
  plainEtag,
} from '@undertone/contract';
import { announcedBytes, type BodyTimeouts, bodyStream } from '../http/body.ts';
import { ProblemError } from '../problems.ts';
import type { BlobStore, WrittenBlob } from '../stores/blob-store.ts';
import type { AddedPart, Part, RequestStore, StorageLimits } from '../stores/request-store.ts';
import { StoreUnavailableError } from '../stores/unavailable.ts';
import { explainParts } from './explain-parts.ts';
import type { AsynchMetrics } from './metrics.ts';
import { ownRequest, requireUploading } from './requests.ts';

interface UploadOptions {
  readonly requests: RequestStore;
  readonly blobs: BlobStore;
  readonly metrics: AsynchMetrics;
  readonly timeouts: BodyTimeouts;
  /** Bytes that one key may have stored. */
  readonly storageLimit: number;
  /** A recording is complete and waits for a worker. */
  readonly onQueued: () => void;
}

/** A part that is arriving now. */
interface Arrival {
  readonly replaced: AbortController;
  bytes: number;
}

/** How a recording comes in: announced, part by part, completed. */
export class Uploads {
  readonly #options: UploadOptions;
  readonly #limits: StorageLimits;
  /** By request and part number: the limits count what arrives before it is recorded, each part once. */
  readonly #arriving = new Map<string, Map<number, Arrival>>();

  constructor(options: UploadOptions) {
    this.#options = options;
    this.#limits = { maxRequestBytes: ASYNCH_LIMITS.maxFileBytes, maxOwnerBytes: options.storageLimit };
  }

  /** file_name is asked for because clients send it. Nothing needs it, so it is neither kept nor used. */
  async initiate(owner: string, query: InitiateQuery, baseUrl: string): Promise<InitiateResult> {
    const { requests, blobs, metrics } = this.#options;
    const { part_count: partCount, model = DEFAULT_MODEL, interval = INTERVAL_SECONDS.default } = query;
    const request = await requests.create({
      id: randomUUID(),
      owner,
      uploadId: randomUUID(),
      model,
      intervalSeconds: interval,
      partCount,
    });
    metrics.uploads.inc({ event: 'initiated' });
    const numbers = Array.from({ length: partCount }, (_, i) => i + 1);
    return {
      request_id: request.id,
      upload_id: request.uploadId,
      presigned_urls: await blobs.uploadUrls({ ...request, baseUrl }, numbers),
      expires_at: new Date(request.expiresAt).toISOString(),
    };
  }

  /** Straight to its blob, hashed and counted on the way, recorded when it is safe. */
  async addPart(
    requestId: string,
    number: number,
    body: IncomingMessage,
    contentMd5?: string,
  ): Promise<WrittenBlob> {
    const { requests, blobs, metrics } = this.#options;
    const expected = contentMd5 === undefined ? null : readContentMd5(contentMd5);
    requireUploading(await requests.find(requestId));
    const name = `${number}-${randomUUID()}`;
    const arrival = this.#begin(requestId, number);
    let recording = false;
    try {
      const room = await this.#room(requestId, number, announcedBytes(body) ?? 0);
      const written = await blobs.write(requestId, name, this.#counted(body, arrival, requestId, room), {
        length: announcedBytes(body),
        signal: arrival.replaced.signal,
      });
      checkPart(written, expected);
      recording = true;
      await this.#record(requestId, { number, blob: name, ...written });
      metrics.partBytes.inc(written.bytes);
      return written;
    } catch (error) {
      // A record whose writing was not confirmed may be there all the same; if it is not, the sweep finds the blob.
      if (!recording || !(error instanceof StoreUnavailableError)) {
        await blobs.erase(requestId, name).catch(() => undefined);
      }
      arrival.replaced.signal.throwIfAborted();
      // The folder goes away when the request is deleted meanwhile; then that is what happened.
      if (!(error instanceof ProblemError)) requireUploading(await requests.find(requestId));
      throw error;
    } finally {
      this.#end(requestId, number, arrival);
    }
  }

  /** uploading -> queued. Names the parts that are missing or wrong, and then leaves the upload open. */
  async complete(owner: string, { request_id, upload_id, parts }: CompleteBody): Promise<CompleteResult> {
    const { requests, metrics, onQueued } = this.#options;
    const found = await ownRequest(requests, request_id, owner);
    if (found.uploadId !== upload_id) {
      throw new ProblemError('not_found', 'The upload_id is not that of this request_id.');
    }
    if (found.state === 'uploading') {
      const etags = new Map(parts.map(({ PartNumber, ETag }) => [PartNumber, plainEtag(ETag)]));
      await this.#recordArrived(found.id);
      const contradictory = parts.some(({ PartNumber, ETag }) => etags.get(PartNumber) !== plainEtag(ETag));
      if (!contradictory && (await requests.complete(found.id, etags))) {
        metrics.uploads.inc({ event: 'completed' });
        onQueued();
      }
    }
    const { id, state } = await ownRequest(requests, found.id, owner);
    if (state === 'uploading') throw explainParts(found.partCount, parts, await requests.parts(id));
    return { request_id: id, status: state };
  }

  /** Where parts do not pass through here, this is when we learn of them, and when the limits are checked. */
  async #recordArrived(requestId: string): Promise<void> {
    const { requests, blobs, metrics } = this.#options;
    const parts = await blobs.arrived?.(requestId);
    if (parts === undefined) return;
    const answer = await requests.setParts(requestId, parts, this.#limits);
    if (answer.added) metrics.partBytes.inc(parts.reduce((sum, { bytes }) => sum + bytes, 0));
    else this.#refuse(answer);
  }

  /** A part that is sent again while its first try still hangs: the newer one wins, and only it is counted. */
  #begin(requestId: string, number: number): Arrival {
    const parts = this.#arriving.get(requestId) ?? new Map<number, Arrival>();
    parts
      .get(number)
      ?.replaced.abort(new ProblemError('conflict', 'This part was sent again; the newer one is kept.'));
    const arrival: Arrival = { replaced: new AbortController(), bytes: 0 };
    this.#arriving.set(requestId, parts.set(number, arrival));
    return arrival;
  }

  #end(requestId: string, number: number, arrival: Arrival): void {
    const parts = this.#arriving.get(requestId);
    if (parts?.get(number) !== arrival) return;
    parts.delete(number);
    if (parts.size === 0) this.#arriving.delete(requestId);
  }

  async #room(requestId: string, number: number, announced: number): Promise<Room> {
    const { bytesOfOtherParts, bytesOfOwner } = await this.#options.requests.usage(requestId, number);
    const { maxRequestBytes, maxOwnerBytes } = this.#limits;
    const room = {
      request: maxRequestBytes - bytesOfOtherParts,
      owner: maxOwnerBytes - bytesOfOwner,
      usedBytes: bytesOfOwner,
    };
    this.#check(announced, room);
    return room;
  }

  #check(arriving: number, { request, owner, usedBytes }: Room): void {
    if (arriving > request) throw fileTooLarge();
    if (arriving > owner) throw storageLimit(this.#limits.maxOwnerBytes, usedBytes);
  }

  async *#counted(body: IncomingMessage, arrival: Arrival, requestId: string, room: Room) {
    const { timeouts } = this.#options;
    const limits = { ...timeouts, maxBytes: ASYNCH_LIMITS.maxFileBytes };
    for await (const chunk of bodyStream(body, limits, arrival.replaced.signal)) {
      arrival.bytes += chunk.length;
      const arriving = [...(this.#arriving.get(requestId)?.values() ?? [])];
      this.#check(
        arriving.reduce((sum, { bytes }) => sum + bytes, 0),
        room,
      );
      yield chunk as Uint8Array;
    }
  }

  async #record(requestId: string, part: Part): Promise<void> {
    const { requests, blobs } = this.#options;
    const answer = await requests.addPart(requestId, part, this.#limits);
    if (answer.added) {
      if (answer.replaced !== null) await blobs.erase(requestId, answer.replaced).catch(() => undefined);
    } else {
      this.#refuse(answer);
      requireUploading(await requests.find(requestId));
    }
  }

  #refuse(answer: Exclude<AddedPart, { added: true }>): void {
    if (answer.why === 'file_too_large') throw fileTooLarge();
    if (answer.why === 'storage_limit') throw storageLimit(this.#limits.maxOwnerBytes, answer.usedBytes);
  }
}

interface Room {
  readonly request: number;
  readonly owner: number;
  readonly usedBytes: number;
}

function checkPart({ bytes, etag }: WrittenBlob, expectedMd5: string | null): void {
  if (bytes === 0) throw new ProblemError('bad_request', 'A part cannot be empty.');
  if (expectedMd5 !== null && etag !== expectedMd5) {
    throw new ProblemError(
      'bad_request',
      'The part does not match its Content-MD5: it was damaged on the way. Send it again.',
    );
  }
}

function fileTooLarge(): ProblemError {
  const max_bytes = ASYNCH_LIMITS.maxFileBytes;
  return new ProblemError('file_too_large', `All parts together may have ${max_bytes} bytes (1 GiB).`, {
    figures: { max_bytes },
  });
}

function storageLimit(limit_bytes: number, used_bytes: number): ProblemError {
  const detail = `This key has ${used_bytes} of ${limit_bytes} bytes stored. Delete requests, or wait until recordings are processed.`;
  return new ProblemError('storage_limit', detail, { figures: { limit_bytes, used_bytes } });
}

function readContentMd5(header: string): string {
  const bytes = Buffer.from(header, 'base64');
  if (bytes.length !== 16) {
    throw new ProblemError('bad_request', 'Content-MD5 must be the base64 of the 16 bytes of an MD5.');
  }
  return bytes.toString('hex');
}
