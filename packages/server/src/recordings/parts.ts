import { randomUUID } from 'node:crypto';
import { ASYNCH_LIMITS } from '@undertone/contract';
import type { Metrics } from '../operators/metrics.ts';
import { fileTooLarge, ProblemError, storageLimit } from '../problems.ts';
import type { BlobStore, WrittenBlob } from '../stores/blobs.ts';
import {
  type Completed,
  checkLimits,
  type LimitExceeded,
  type Part,
  type RequestStore,
  type RequestWithUsage,
  type StorageLimits,
} from '../stores/contracts.ts';
import { StoreUnavailableError } from '../stores/errors.ts';
import type { KeyLimits } from '../stores/key-limits.ts';
import { type Arrival, Arrivals } from './arrivals.ts';
import { notFound, requireUploading } from './requests.ts';

/** A part whose bytes have not been read yet. */
export interface Incoming {
  /** From Content-Length; undefined if there is none. */
  readonly length: number | undefined;
  /** Called when the upload has been found. */
  onOwner?(owner: string): void;
  open(signal: AbortSignal): AsyncIterable<Uint8Array>;
}

interface ReceiverOptions {
  readonly requests: RequestStore;
  readonly blobs: BlobStore;
  readonly metrics: Metrics;
  /** Bytes that an owner may have stored, if it has no limit of its own; 0 is no limit. */
  readonly storageLimit: number;
  /** The owner of SERVICE_API_KEY, which no store knows. */
  readonly isEnvironmentOwner: (owner: string) => boolean;
}

/** Receives parts within the storage limits and records them once they are safely stored. */
export class PartReceiver {
  readonly #options: ReceiverOptions;
  readonly #arrivals = new Arrivals();

  constructor(options: ReceiverOptions) {
    this.#options = options;
  }

  /** Streams a part to its blob, hashing and counting on the way, then records it. Two store calls. */
  async receive(
    requestId: string,
    number: number,
    incoming: Incoming,
    expectedMd5: string | null = null,
  ): Promise<WrittenBlob> {
    const { requests, blobs, metrics } = this.#options;
    const found = await this.#find(requestId, number);
    incoming.onOwner?.(found.request.owner);
    const limits = storageLimits(found.storageLimit ?? this.#options.storageLimit);
    const blob = `${number}-${randomUUID()}`;
    const { length } = incoming;
    // An announced length is reserved at once.
    const arrival = this.#arrivals.begin(found.request, number, length ?? 0);
    const { signal } = arrival.replaced;
    let isRecording = false;
    try {
      const requireQuota = this.#quotaOf(arrival, found, limits);
      await requireQuota();
      const counted = this.#counted(incoming.open(signal), arrival, requireQuota);
      const written = await blobs.write(requestId, blob, counted, { length, signal });
      checkPart(written, expectedMd5);
      isRecording = true;
      const answer = await requests.addPart(requestId, { number, blob, ...written }, limits);
      if (!answer.added) {
        if (answer.why !== 'not_uploading') throw limitProblem(answer, limits);
        requireUploading(answer.request);
      } else {
        this.#arrivals.record(arrival);
        if (answer.replaced !== null) await blobs.erase(requestId, answer.replaced).catch(() => undefined);
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
      this.#arrivals.end(arrival);
    }
  }

  /** `arrived`: parts that clients uploaded straight to the blob store. Only now are they checked against the limits. */
  async complete(
    requestId: string,
    etags: ReadonlyMap<number, string>,
    arrived: readonly Part[] | undefined,
    { storage, queued }: Pick<KeyLimits, 'storage' | 'queued'>,
  ): Promise<Exclude<Completed, LimitExceeded>> {
    const { requests, metrics } = this.#options;
    const limits = storageLimits(storage);
    const parts = arrived && { parts: arrived, limits };
    const answer = await requests.complete(requestId, etags, parts, queued);
    if ('why' in answer) throw limitProblem(answer, limits);
    if (arrived && (answer.queued || answer.request?.state === 'uploading')) {
      metrics.partBytes.inc(arrived.reduce((sum, { bytes }) => sum + bytes, 0));
    }
    return answer;
  }

  async #find(requestId: string, number: number): Promise<RequestWithUsage> {
    const found = await this.#options.requests.findWithUsage(requestId, number);
    if (found === null) throw notFound();
    requireUploading(found.request);
    if (!found.ownerHasKey && !this.#options.isEnvironmentOwner(found.request.owner)) {
      throw new ProblemError('forbidden', 'The API key of this upload was revoked or has expired.');
    }
    return found;
  }

  /** Throws the problem when this part, with all others that are arriving, would pass the limits. */
  #quotaOf(arrival: Arrival, found: RequestWithUsage, limits: StorageLimits): () => Promise<void> {
    let { usage } = found;
    let recorded = this.#arrivals.recorded(arrival);
    const exceeded = () => {
      const others = this.#arrivals.others(arrival, recorded);
      const requestBytes = usage.requestBytes + others.requestBytes;
      return checkLimits(
        { requestBytes, ownerBytes: usage.ownerBytes + others.ownerBytes },
        arrival.bytes,
        limits,
      );
    };
    return async () => {
      if (exceeded() === null) return;
      // Something may have been erased since.
      ({ usage } = await this.#find(arrival.request.id, arrival.number));
      recorded = this.#arrivals.recorded(arrival);
      const answer = exceeded();
      if (answer !== null) throw limitProblem(answer, limits);
    };
  }

  async *#counted(bytes: AsyncIterable<Uint8Array>, arrival: Arrival, requireQuota: () => Promise<void>) {
    let received = 0;
    for await (const chunk of bytes) {
      received += chunk.length;
      if (received > arrival.bytes) {
        this.#arrivals.grow(arrival, received - arrival.bytes);
        await requireQuota();
      }
      yield chunk;
    }
  }
}

function storageLimits(storage: number): StorageLimits {
  return {
    maxRequestBytes: ASYNCH_LIMITS.maxFileBytes,
    maxOwnerBytes: storage === 0 ? Number.MAX_SAFE_INTEGER : storage,
  };
}

function limitProblem(answer: LimitExceeded, { maxOwnerBytes }: StorageLimits): ProblemError {
  return answer.why === 'file_too_large' ? fileTooLarge() : storageLimit(maxOwnerBytes, answer.usedBytes);
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
