import type { ChannelMode, ErrorCode, RequestState } from '@undertone/contract';

/**
 * The life of a request. One store owns all of it: state, lease and failed attempts change in one transaction.
 *
 * - It is made `uploading`. Only then do parts arrive, and a part that arrives again replaces itself.
 * - When the sender names every part with the ETag it was acknowledged with, it becomes `queued`; parts no longer change
 *   from then on.
 * - A whole recording in one call holds a lease while it arrives. When that runs out the call has broken off, and the
 *   request is deleted.
 * - A worker claims it: it becomes `processing` under a lease, which the worker renews. Only the holder of this very
 *   lease can renew, requeue or finish it: a worker that was thought dead and comes back changes nothing.
 * - A lease that ran out means that its worker died. The next claim takes the request over and counts a failed attempt.
 * - A worker that stops gives it back to `queued` (requeue); whether that counts as a failed attempt is its word.
 * - `completed` has the result, `failed` the failure. Neither changes again.
 * - 24 hours after it was made any of them becomes `expired`: result, failure and parts are gone. What is left (id,
 *   owner, expiry) says for 24 hours more that there was something, then that is gone as well.
 * - It can be deleted at any time. Then it is unknown to everybody; only a second DELETE finds, for the same time, that
 *   it was there.
 *
 * Each step is one conditional write that says whether it happened, so that two hands on one request cannot undo each
 * other's work, and a crash leaves it before the step or after it. All times are the store's own.
 */
export interface AsynchRequest {
  readonly id: string;
  /** Id of the key that made it. */
  readonly owner: string;
  readonly uploadId: string;
  readonly model: string;
  readonly intervalSeconds: number;
  readonly channels: ChannelMode;
  /** The caller's own name for it. */
  readonly label: string | null;
  /** Who is told when it is over. */
  readonly webhookUrl: string | null;
  readonly partCount: number;
  readonly state: RequestState;
  /** The share of the present state that is done, 0 to 1. */
  readonly progress: number;
  /** Known when it is completed. */
  readonly durationSeconds: number | null;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly expiresAt: number;
}

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
  /** Of a whole recording in one call: without `renewUpload` for so long it has broken off. */
  readonly uploadLeaseMs?: number;
}

/** Says that a call which is sent again means the same request. Both are hashes. */
export interface Idempotency {
  readonly key: string;
  /** Of the method and the query, which must be the same again. */
  readonly query: string;
}

export type CreatedOnce =
  | { readonly request: AsynchRequest; readonly isNew: boolean }
  /** The key was used for another query, or its first call is still running. */
  | { readonly inUse: 'other_query' | 'still_running' };

export interface ListOptions {
  readonly limit: number;
  /** Only in this state. Those that have expired are listed only when asked for. */
  readonly state?: RequestState | undefined;
  /** Only those that come after this one. */
  readonly after?: { readonly createdAt: number; readonly id: string } | undefined;
}

export interface Part {
  readonly number: number;
  /** Its name in the BlobStore. */
  readonly blob: string;
  readonly etag: string;
  readonly bytes: number;
}

/** A request that a worker holds. */
export interface Claim {
  readonly request: AsynchRequest;
  /** Names this very holding of it. */
  readonly lease: string;
  /** How many workers died or failed over it before. */
  readonly failedAttempts: number;
}

/** Why a request failed, as its owner will be told. */
export interface Failure {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly figures: Readonly<Record<string, unknown>>;
}

/** `result` is the JSON text of the answer. */
export type Outcome = { readonly result: string } | { readonly failure: Failure };

export type AddedPart =
  | { readonly added: true /** The blob that it makes useless. */; readonly replaced: string | null }
  | { readonly added: false; readonly why: 'not_uploading' | 'file_too_large' }
  | { readonly added: false; readonly why: 'storage_limit'; readonly usedBytes: number };

export interface StorageLimits {
  /** Of all parts of one request. */
  readonly maxRequestBytes: number;
  /** Of all parts of all requests of one owner. */
  readonly maxOwnerBytes: number;
}

/** Every method rejects with StoreUnavailableError, within a second, while the store cannot do it. */
export interface RequestStore {
  /** Initiate. The answer has the store's times. */
  create(request: NewRequest): Promise<AsynchRequest>;
  /** Initiate with an idempotency key: the request that this key made before, or a new one. */
  createOnce(request: NewRequest, idempotency: Idempotency): Promise<CreatedOnce>;
  /** A whole recording in one call, while it arrives. */
  renewUpload(id: string, options: { leaseMs: number }): Promise<void>;
  /** List. Newest first. */
  list(owner: string, options: ListOptions): Promise<AsynchRequest[]>;
  /** Every route. Null when unknown or deleted. One past its time is `expired`, whether or not `expire` has run. Never reads the result. */
  find(id: string): Promise<AsynchRequest | null>;
  /**
   * A part that begins to arrive: what the other parts of the request take, and what its owner has stored in all (these
   * parts included). An earlier arrival of this very part counts in neither.
   */
  usage(id: string, partNumber: number): Promise<{ bytesOfOtherParts: number; bytesOfOwner: number }>;
  /** A part that is safely stored. */
  addPart(id: string, part: Part, limits: StorageLimits): Promise<AddedPart>;
  /** Complete, where parts do not pass through this server: these are all the parts there are. */
  setParts(id: string, parts: readonly Part[], limits: StorageLimits): Promise<AddedPart>;
  /** Complete, to name what is wrong; the worker, to read. In order of their numbers. */
  parts(id: string): Promise<Part[]>;
  /** Complete: uploading -> queued, if these are exactly the parts there are. */
  complete(id: string, etags: ReadonlyMap<number, string>): Promise<boolean>;
  /**
   * A worker, in one statement: the request that has waited longest, or one whose lease ran out (which counts a failed
   * attempt). Leases in `running` are this process's own and are known to be alive.
   */
  claim(options: { leaseMs: number; running: readonly string[] }): Promise<Claim | null>;
  /** The worker, every few seconds: progress and lease in one write. False when the request is no longer its own. */
  renew(id: string, lease: string, options: { leaseMs: number; progress: number }): Promise<boolean>;
  /** The worker: processing -> queued. False when it is no longer its own. */
  requeue(id: string, lease: string, options: { countAttempt: boolean }): Promise<boolean>;
  /**
   * The worker: processing -> completed or failed, with a webhook to be sent where one is wanted. False when it is no
   * longer its own.
   */
  finish(id: string, lease: string, outcome: Outcome, durationSeconds?: number): Promise<boolean>;
  /** Prediction: what `finish` was given. Null when there is nothing (any more). */
  outcome(id: string): Promise<Outcome | null>;
  /** Whoever has erased the blobs of a request. */
  deleteParts(id: string): Promise<void>;
  /** Delete. `already`: it was deleted before. `unknown`: there is none, or it is another owner's. */
  delete(id: string, owner: string): Promise<'deleted' | 'already' | 'unknown'>;
  /** The sweep: what is past its time becomes `expired`, what has been so for 24 hours is gone, and so is what broke off. */
  expire(): Promise<void>;
  /** The sweep: which of these requests still need their blobs (uploading, queued or processing). */
  needingBlobs(ids: readonly string[]): Promise<string[]>;
  /** Metrics. */
  countByState(): Promise<Partial<Record<RequestState, number>>>;
  /** `/readyz`: writes. */
  checkWritable(): Promise<void>;
}

/** What one process tells the others. Hints only: whoever misses one finds out a little later. */
export interface RequestEvents {
  /** A request waits for a worker. */
  queued(): void;
  /** A request that a worker had in hand was deleted or has expired. */
  over(id: string): void;
}
