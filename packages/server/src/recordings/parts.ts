import { randomUUID } from 'node:crypto';
import { ASYNCH_LIMITS } from '@undertone/contract';
import type { Metrics } from '../operators/metrics.ts';
import { ProblemError } from '../problems.ts';
import type { BlobStore, WrittenBlob } from '../stores/blob-store.ts';
import type { AddedPart, Part, RequestStore, StorageLimits } from '../stores/request-store.ts';
import { StoreUnavailableError } from '../stores/unavailable.ts';
import { requireUploading } from './requests.ts';

/** A part that is arriving now. */
interface Arrival {
  readonly replaced: AbortController;
  bytes: number;
}

interface Room {
  readonly request: number;
  readonly owner: number;
  readonly usedBytes: number;
}

/** The bytes of a part, not read yet. */
export interface Incoming {
  /** As announced; undefined when it was not. */
  readonly length: number | undefined;
  open(signal: AbortSignal): AsyncIterable<Uint8Array>;
}

interface ReceiverOptions {
  readonly requests: RequestStore;
  readonly blobs: BlobStore;
  readonly metrics: Metrics;
  /** Bytes that one key may have stored. */
  readonly storageLimit: number;
}

/** How bytes come into the store: within the limits, recorded when they are safe. */
export class PartReceiver {
  readonly #options: ReceiverOptions;
  readonly #limits: StorageLimits;
  /** By request and part number: the limits count what arrives before it is recorded, each part once. */
  readonly #arriving = new Map<string, Map<number, Arrival>>();

  constructor(options: ReceiverOptions) {
    this.#options = options;
    this.#limits = { maxRequestBytes: ASYNCH_LIMITS.maxFileBytes, maxOwnerBytes: options.storageLimit };
  }

  /** Straight to its blob, hashed and counted on the way, recorded when it is safe. */
  async receive(
    requestId: string,
    number: number,
    incoming: Incoming,
    expectedMd5: string | null = null,
  ): Promise<WrittenBlob> {
    const { requests, blobs, metrics } = this.#options;
    requireUploading(await requests.find(requestId));
    const name = `${number}-${randomUUID()}`;
    const arrival = this.#begin(requestId, number);
    const { signal } = arrival.replaced;
    let recording = false;
    try {
      const { length } = incoming;
      const room = await this.#room(requestId, number, length ?? 0);
      const counted = this.#counted(incoming.open(signal), arrival, requestId, room);
      const written = await blobs.write(requestId, name, counted, { length, signal });
      checkPart(written, expectedMd5);
      recording = true;
      await this.#record(requestId, { number, blob: name, ...written });
      metrics.partBytes.inc(written.bytes);
      return written;
    } catch (error) {
      // A record whose writing was not confirmed may be there all the same; if it is not, the sweep finds the blob.
      if (!recording || !(error instanceof StoreUnavailableError)) {
        await blobs.erase(requestId, name).catch(() => undefined);
      }
      signal.throwIfAborted();
      // The folder goes away when the request is deleted meanwhile; then that is what happened.
      if (!(error instanceof ProblemError)) requireUploading(await requests.find(requestId));
      throw error;
    } finally {
      this.#end(requestId, number, arrival);
    }
  }

  /** Where parts do not pass through here, completing is when we learn of them, and when the limits are checked. */
  async recordArrived(requestId: string): Promise<void> {
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

  async *#counted(bytes: AsyncIterable<Uint8Array>, arrival: Arrival, requestId: string, room: Room) {
    for await (const chunk of bytes) {
      arrival.bytes += chunk.length;
      const arriving = [...(this.#arriving.get(requestId)?.values() ?? [])];
      this.#check(
        arriving.reduce((sum, { bytes }) => sum + bytes, 0),
        room,
      );
      yield chunk;
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
