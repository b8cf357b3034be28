import { randomUUID } from 'node:crypto';
import { ASYNCH_LIMITS } from '@undertone/contract';
import type { Metrics } from '../operators/metrics.ts';
import { ProblemError } from '../problems.ts';
import type { BlobStore, WrittenBlob } from '../stores/blobs.ts';
import {
  type Completed,
  checkLimits,
  type LimitExceeded,
  type Part,
  type RequestStore,
  type StorageLimits,
  type StorageUsage,
} from '../stores/contracts.ts';
import { StoreUnavailableError } from '../stores/errors.ts';
import { notFound, requireUploading } from './requests.ts';

/** A part that is arriving now. */
interface Arrival {
  readonly replaced: AbortController;
  bytes: number;
}

/** A part whose bytes have not been read yet. */
export interface Incoming {
  /** From Content-Length; undefined if there is none. */
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

/** Receives parts within the storage limits and records them once they are safely stored. */
export class PartReceiver {
  readonly #options: ReceiverOptions;
  readonly #limits: StorageLimits;
  /** By request and part number: the limits also count bytes that are not recorded yet, once for each part. */
  readonly #arriving = new Map<string, Map<number, Arrival>>();

  constructor(options: ReceiverOptions) {
    this.#options = options;
    this.#limits = { maxRequestBytes: ASYNCH_LIMITS.maxFileBytes, maxOwnerBytes: options.storageLimit };
  }

  /** Streams a part to its blob, hashing and counting on the way, then records it. Two store calls. */
  async receive(
    requestId: string,
    number: number,
    incoming: Incoming,
    expectedMd5: string | null = null,
  ): Promise<WrittenBlob> {
    const { requests, blobs, metrics } = this.#options;
    const found = await requests.findWithUsage(requestId, number);
    if (found === null) throw notFound();
    requireUploading(found.request);
    const blob = `${number}-${randomUUID()}`;
    const arrival = this.#begin(requestId, number);
    const { signal } = arrival.replaced;
    let isRecording = false;
    try {
      const { length } = incoming;
      this.#requireQuota(found.usage, length ?? 0);
      const counted = this.#counted(incoming.open(signal), arrival, requestId, found.usage);
      const written = await blobs.write(requestId, blob, counted, { length, signal });
      checkPart(written, expectedMd5);
      isRecording = true;
      const answer = await requests.addPart(requestId, { number, blob, ...written }, this.#limits);
      if (!answer.added) {
        if (answer.why !== 'not_uploading') throw this.#limitProblem(answer);
        requireUploading(answer.request);
      } else if (answer.replaced !== null) {
        await blobs.erase(requestId, answer.replaced).catch(() => undefined);
      }
      metrics.partBytes.inc(written.bytes);
      return written;
    } catch (error) {
      // An unconfirmed record may exist all the same. If it does not, the sweep finds the blob.
      if (!isRecording || !(error instanceof StoreUnavailableError)) {
        await blobs.erase(requestId, blob).catch(() => undefined);
      }
      signal.throwIfAborted();
      // If the request was deleted meanwhile, its folder is gone: then answer 404 rather than the file error.
      if (!isRecording && !(error instanceof ProblemError)) requireUploading(await requests.find(requestId));
      throw error;
    } finally {
      this.#end(requestId, number, arrival);
    }
  }

  /** `arrived`: parts that clients uploaded straight to the blob store. Only now are they checked against the limits. */
  async complete(
    requestId: string,
    etags: ReadonlyMap<number, string>,
    arrived: readonly Part[] | undefined,
  ): Promise<Exclude<Completed, LimitExceeded>> {
    const { requests, metrics } = this.#options;
    const parts = arrived && { parts: arrived, limits: this.#limits };
    const answer = await requests.complete(requestId, etags, parts);
    if ('why' in answer) throw this.#limitProblem(answer);
    if (arrived && (answer.queued || answer.request?.state === 'uploading')) {
      metrics.partBytes.inc(arrived.reduce((sum, { bytes }) => sum + bytes, 0));
    }
    return answer;
  }

  /** If a part is sent again while its first attempt hangs, the newer one wins, and only it is counted. */
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

  #requireQuota(usage: StorageUsage, arrivingBytes: number): void {
    const exceeded = checkLimits(usage, arrivingBytes, this.#limits);
    if (exceeded !== null) throw this.#limitProblem(exceeded);
  }

  async *#counted(
    bytes: AsyncIterable<Uint8Array>,
    arrival: Arrival,
    requestId: string,
    usage: StorageUsage,
  ) {
    for await (const chunk of bytes) {
      arrival.bytes += chunk.length;
      const arriving = [...(this.#arriving.get(requestId)?.values() ?? [])];
      const arrivingBytes = arriving.reduce((sum, { bytes }) => sum + bytes, 0);
      this.#requireQuota(usage, arrivingBytes);
      yield chunk;
    }
  }

  #limitProblem(answer: LimitExceeded): ProblemError {
    if (answer.why === 'file_too_large') return fileTooLarge();
    return storageLimit(this.#limits.maxOwnerBytes, answer.usedBytes);
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
