import type { ChannelMode } from '@undertone/contract';
import type { KeyLimits } from '../key-limits.ts';
import type { AsynchRequest, Trace } from './request.ts';

export interface NewRequest {
  readonly id: string;
  readonly owner: string;
  readonly uploadId: string;
  readonly model: string;
  readonly intervalSeconds: number;
  readonly channels?: ChannelMode;
  readonly label?: string | null;
  readonly webhookUrl?: string | null;
  readonly partCount: number;
  readonly trace?: Trace;
  /** For a whole recording in one call: without `renewUpload` for this long the call was interrupted. */
  readonly uploadLeaseMs?: number;
}

/** Makes a retried call return the same request. Both are hashes. */
export interface Idempotency {
  readonly key: string;
  /** Of the method and the query, which a retry must repeat. */
  readonly query: string;
}

export type CreatedOnce =
  | { readonly request: AsynchRequest; readonly isNew: boolean }
  /** The key was used for another query, or its first call is still running. */
  | { readonly inUse: 'other_query' | 'still_running' };

/** What an owner may have at most; 0 is no limit. */
export type Quota = Pick<KeyLimits, 'open' | 'queued' | 'storage'>;

/** What is checked before a request is created. */
export interface CreateQuota extends Partial<Quota> {
  /** Size of the recording, if the caller named it. */
  readonly announcedBytes?: number | undefined;
}

export interface Part {
  readonly number: number;
  /** Its name in the BlobStore. */
  readonly blob: string;
  readonly etag: string;
  readonly bytes: number;
}

export interface StorageLimits {
  /** For all parts of one request. */
  readonly maxRequestBytes: number;
  /** For all parts of all requests of one owner. */
  readonly maxOwnerBytes: number;
}

/** Stored bytes. An earlier copy of the part that is arriving counts in neither. */
export interface StorageUsage {
  /** Of the other parts of the request. */
  readonly requestBytes: number;
  /** Of everything the owner has stored, this request included. */
  readonly ownerBytes: number;
}

/** A request whose part begins to arrive. */
export interface RequestWithUsage {
  readonly request: AsynchRequest;
  readonly usage: StorageUsage;
  /** Of the owner; null if it has none of its own. */
  readonly storageLimit: number | null;
  /** False when all stored keys of the owner are revoked or expired. */
  readonly ownerHasKey: boolean;
}

export type LimitExceeded =
  | { readonly added: false; readonly why: 'file_too_large' }
  | { readonly added: false; readonly why: 'storage_limit'; readonly usedBytes: number };

/** Null if this many more bytes are within the limits. */
export function checkLimits(
  { requestBytes, ownerBytes }: StorageUsage,
  bytes: number,
  { maxRequestBytes, maxOwnerBytes }: StorageLimits,
): LimitExceeded | null {
  if (requestBytes + bytes > maxRequestBytes) return { added: false, why: 'file_too_large' };
  if (ownerBytes + bytes <= maxOwnerBytes) return null;
  return { added: false, why: 'storage_limit', usedBytes: ownerBytes };
}

export type AddedPart =
  /** `replaced`: the blob of an earlier copy, which is no longer needed. */
  | { readonly added: true; readonly replaced: string | null }
  /** With the request as `find` returns it. */
  | { readonly added: false; readonly why: 'not_uploading'; readonly request: AsynchRequest | null }
  | LimitExceeded;

export type Completed =
  /** The request as `find` returns it, and its parts while it is still uploading. */
  | { readonly queued: boolean; readonly request: AsynchRequest | null; readonly parts: readonly Part[] }
  | LimitExceeded;

/** The part of the RequestStore that receives recordings. */
export interface UploadStore {
  /** Initiate. The answer has the store's times. Rejects with QuotaExceededError when the owner has as much as it may have. */
  create(request: NewRequest, quota?: CreateQuota): Promise<AsynchRequest>;
  /** Initiate with an idempotency key: the request that this key created before, or a new one, within the quota. */
  createOnce(request: NewRequest, idempotency: Idempotency, quota?: CreateQuota): Promise<CreatedOnce>;
  /** A whole recording in one call, while it arrives. */
  renewUpload(id: string, options: { leaseMs: number }): Promise<void>;
  /** A part that begins to arrive: `find`, and what decides whether its owner may send it. */
  findWithUsage(id: string, partNumber: number): Promise<RequestWithUsage | null>;
  /** A part that is safely stored. */
  addPart(id: string, part: Part, limits: StorageLimits): Promise<AddedPart>;
  /** Resume; the worker; the sweep. Ordered by number. */
  parts(id: string): Promise<Part[]>;
  /**
   * Complete: uploading -> queued, if these are exactly the parts there are. Where clients upload straight to the blob store,
   * `arrived` lists what is there: it is checked against the limits and recorded first. Rejects with QuotaExceededError when
   * the owner has `maxQueued` requests waiting; 0 is no limit.
   */
  complete(
    id: string,
    etags: ReadonlyMap<number, string>,
    arrived?: { readonly parts: readonly Part[]; readonly limits: StorageLimits },
    maxQueued?: number,
  ): Promise<Completed>;
  /**
   * Initiate and resume, before upload URLs are given out again that cannot be revoked: the blobs of the request are erased once
   * more when they have ended.
   */
  noteUrls(id: string): Promise<void>;
}
