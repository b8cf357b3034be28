// What the rest of the server may ask of the stores that keep rows: requests, keys, webhooks, rate limits. The contract for
// recordings is in `blobs.ts`. Every method rejects with StoreUnavailableError, within its budget (`budgets.ts`), while its store cannot do it.
import type { ChannelMode, ErrorCode, RequestState, TokenScope } from '@undertone/contract';
import type { KeyLimits, LimitChanges, NamedLimits } from './key-limits.ts';

/** The stores that one database holds. */
export interface SqlStores {
  readonly requests: RequestStore;
  readonly keys: KeyStore;
  readonly webhooks: WebhookStore;
  readonly ledger: LedgerStore;
  close(): Promise<void>;
}

/**
 * The life of a request. One store owns all of it: state, lease and failed attempts change in one transaction.
 *
 * - A new request is `uploading`. Only then do parts arrive; a part that is sent again replaces the first.
 * - When the client names every part with the ETag it was given, the request becomes `queued`. Its parts no longer change.
 * - A whole recording in one call holds a lease while it arrives. An expired lease means that the call was interrupted, and
 *   the request is deleted.
 * - A worker claims the request: it becomes `processing` under a lease, which the worker renews. Only the holder of that
 *   lease can renew, requeue or finish it, so a worker that was presumed dead and comes back changes nothing.
 * - An expired lease means that the worker died. The next claim takes the request over and counts a failed attempt, unless the
 *   store was unavailable meanwhile and nobody has renewed the lease since.
 * - A worker that stops requeues the request, and decides whether that counts as a failed attempt and how long it waits.
 * - `completed` has the result, `failed` the failure. Neither changes again.
 * - 24 hours after it was created every request becomes `expired`: result, failure and parts are gone. A tombstone (id,
 *   owner, times) remains for another 24 hours.
 * - A request can be deleted at any time. It is then unknown to everybody; only a second DELETE sees its tombstone.
 *
 * Each step is one conditional write that says whether it happened, so concurrent writers cannot undo each other's work,
 * and a crash leaves the request before the step or after it. All times come from the store.
 */
export interface AsynchRequest {
  readonly id: string;
  /** Owner of the key that created it: all keys of this owner see it. */
  readonly owner: string;
  readonly uploadId: string;
  readonly model: string;
  readonly intervalSeconds: number;
  readonly channels: ChannelMode;
  /** Chosen by the caller. */
  readonly label: string | null;
  /** Notified when the request is completed or failed. */
  readonly webhookUrl: string | null;
  readonly partCount: number;
  readonly state: RequestState;
  /** Progress within the current state, 0 to 1. */
  readonly progress: number;
  /** Known once completed. */
  readonly durationSeconds: number | null;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** The call that created a request: names it in the log lines of every process that handles it. */
export interface Trace {
  /** Its `x-request-id`. */
  readonly requestId: string;
  /** Safe to log. */
  readonly key: string | null;
  /** W3C Trace Context of the caller. */
  readonly traceparent: string | null;
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

export interface ListOptions {
  readonly limit: number;
  /** Only this state. Expired requests are listed only when asked for. */
  readonly state?: RequestState | undefined;
  /** Only requests after this one. */
  readonly after?: { readonly createdAt: number; readonly id: string } | undefined;
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

/** An upload whose parts go straight to the blob store. */
export interface ArrivedUpload {
  readonly id: string;
  readonly owner: string;
  readonly bytes: number;
  /** Of everything the owner has stored, this upload included. */
  readonly ownerBytes: number;
  /** Of the owner; null if it has none of its own. */
  readonly storageLimit: number | null;
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

export interface ClaimOptions {
  readonly leaseMs: number;
  /** Leases of this process, known to be alive. */
  readonly running: readonly string[];
  /** Their requests are left out. */
  readonly exceptOwners?: readonly string[];
}

/** A request that a worker holds. */
export interface Claim {
  readonly request: AsynchRequest;
  /** A new one for every claim. */
  readonly lease: string;
  readonly failedAttempts: number;
  /** How often it was requeued without a failed attempt. */
  readonly postponed: number;
  /** Time since it was queued. */
  readonly waitedMs: number;
  readonly trace: Trace | null;
}

export interface RequeueOptions {
  readonly countAttempt: boolean;
  /** No worker claims it before. Default: at once. */
  readonly afterMs?: number;
}

/** Why a request failed, as its owner sees it. */
export interface Failure {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly figures: Readonly<Record<string, unknown>>;
}

/** `plain`: the answer of `GET /prediction`. `detailed`: the answer with `details=true`. */
export type ResultForm = 'plain' | 'detailed';

/** A piece of a large result. All pieces of a form, joined, are its JSON text. */
export interface ResultChunk {
  readonly form: ResultForm;
  /** From 0. */
  readonly number: number;
  readonly text: string;
}

/** `result` is the JSON text of both answers. That of a large one is in chunks. */
export type Outcome =
  | { readonly result: string }
  | { readonly chunked: true }
  | { readonly failure: Failure };

/** One batch of the sweep. */
export interface Expired {
  readonly more: boolean;
  readonly requests: number;
  /** Those of them that waited for a worker until the end. */
  readonly unprocessed: number;
}

/** What waits for a worker. */
export interface Backlog {
  /** Requests that are processing, but whose worker no longer renews its lease. */
  readonly abandoned: number;
  /** Time since the oldest request that waits was created. 0 if none waits. */
  readonly oldestMs: number;
}

export interface RequestStore {
  /** Initiate. The answer has the store's times. Rejects with QuotaExceededError when the owner has as much as it may have. */
  create(request: NewRequest, quota?: CreateQuota): Promise<AsynchRequest>;
  /** Initiate with an idempotency key: the request that this key created before, or a new one, within the quota. */
  createOnce(request: NewRequest, idempotency: Idempotency, quota?: CreateQuota): Promise<CreatedOnce>;
  /** A whole recording in one call, while it arrives. */
  renewUpload(id: string, options: { leaseMs: number }): Promise<void>;
  /** List. Newest first. */
  list(owner: string, options: ListOptions): Promise<AsynchRequest[]>;
  /** Every route. Null when unknown or deleted; `expired` even before `expire` has run. Never reads the result. */
  find(id: string): Promise<AsynchRequest | null>;
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
   * The worker, in one statement: the next request, or one whose lease has expired (a failed attempt). Owners take turns;
   * within an owner the request that was queued first comes first. A request that was requeued for later is left out until then.
   */
  claim(options: ClaimOptions): Promise<Claim | null>;
  /** The worker, every few seconds: progress and lease in one write. False when it no longer holds the request. */
  renew(id: string, lease: string, options: { leaseMs: number; progress: number }): Promise<boolean>;
  /** The worker: processing -> queued, at the same place in the queue. False when it no longer holds the request. */
  requeue(id: string, lease: string, options: RequeueOptions): Promise<boolean>;
  /** The worker, before it finishes a large result. False when it no longer holds the request. */
  addResultChunk(id: string, lease: string, chunk: ResultChunk): Promise<boolean>;
  /** The worker: processing -> completed or failed, with a webhook if one is wanted. False when it no longer holds it. */
  finish(id: string, lease: string, outcome: Outcome, durationSeconds?: number): Promise<boolean>;
  /** Prediction: what `finish` was given. Null when there is none, or none any more. */
  outcome(id: string): Promise<Outcome | null>;
  /** Prediction, chunk by chunk. Null when there is none, or none any more. */
  resultChunk(id: string, form: ResultForm, number: number): Promise<string | null>;
  /** The worker and the sweep, after erasing the blobs of a request. */
  deleteParts(id: string): Promise<void>;
  /** Delete. `already`: it was deleted before. `unknown`: there is none, or it has another owner. */
  delete(id: string, owner: string): Promise<'deleted' | 'already' | 'unknown'>;
  /**
   * The sweep: expires requests, deletes interrupted uploads, and removes tombstones after 24 hours. One batch of each, in
   * its own transaction, so that other calls have their turn in between. A request that expires unfinished gets a webhook,
   * if one is wanted.
   */
  expire(options?: { limit?: number }): Promise<Expired>;
  /** The worker and the sweep: which of these requests still need their blobs (uploading, queued or processing). */
  needingBlobs(ids: readonly string[]): Promise<string[]>;
  /**
   * The sweep, where clients upload straight to the blob store: bytes by request. They count towards the storage of the owner.
   * Returns the requests that are still uploading.
   */
  noteArrived(bytes: ReadonlyMap<string, number>): Promise<ArrivedUpload[]>;
  /** Metrics. */
  countByState(): Promise<Partial<Record<RequestState, number>>>;
  /** Metrics. */
  backlog(): Promise<Backlog>;
  /** `/readyz`: writes. */
  checkWritable(): Promise<void>;
}

/** What one process tells the others. Hints only: workers also poll. */
export interface RequestEvents {
  /** A request is waiting for a worker. */
  queued(): void;
  /** A request that was being processed was deleted or has expired. */
  over(id: string): void;
}

/** The key behind a call. */
export interface Caller {
  /** Of the key. */
  readonly id: string;
  /** Owner of what it uploads, shared by all keys with this owner. */
  readonly owner: string;
  /** Its own, or else those of the settings. */
  readonly limits: KeyLimits;
  readonly name: string;
  /** Safe to log: never derived from a secret. */
  readonly logId: string;
  /** Only for a call with a token. */
  readonly scope?: TokenScope;
}

export interface KeyRecord {
  readonly id: string;
  readonly name: string;
  readonly createdAt: Date;
  /** To the minute; null when the key was never used. */
  readonly lastUsedAt: Date | null;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
  readonly owner: string;
  /** Those that differ from the settings: its own, and its owner's. */
  readonly limits: NamedLimits;
}

export interface NewKey {
  readonly expiresAt?: Date | undefined;
  /** By default the key's id: it shares nothing with other keys. */
  readonly owner?: string | undefined;
  readonly limits?: NamedLimits | undefined;
}

export type ChangedKey = { readonly changed: KeyRecord } | { readonly why: 'unknown' | 'ambiguous' };

export type KeyLookup =
  | {
      readonly state: 'active';
      readonly id: string;
      readonly name: string;
      readonly owner: string;
      readonly limits: NamedLimits;
    }
  | { readonly state: 'revoked' | 'expired' | 'unknown' };

/** A change of a key, for the audit log. */
export interface KeyEvent {
  readonly change: 'created' | 'limited' | 'revoked';
  /** Its id. */
  readonly key: string;
  readonly name: string;
  readonly owner: string;
  readonly limits: NamedLimits;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** API keys. Only hashes are stored, so a key cannot be read back. */
export interface KeyStore {
  /** The command line, and the first start. The key is returned only here. */
  create(name: string, options?: NewKey): Promise<{ key: string; record: KeyRecord }>;
  /** Calls with a key that was not looked up recently. */
  lookUp(key: string): Promise<KeyLookup>;
  /** Calls with a token, which carries the id of its key. */
  lookUpId(id: string): Promise<KeyLookup>;
  /** The authenticator, once a minute: last use by key id, in milliseconds since 1970. */
  recordLastUsed(uses: ReadonlyMap<string, number>): Promise<void>;
  /** The command line. Newest first, revoked keys included. */
  list(): Promise<KeyRecord[]>;
  /** The command line. Limits of the owner change for all its keys. */
  changeLimits(idOrName: string, changes: LimitChanges): Promise<ChangedKey>;
  /**
   * The command line. The key is refused from its first transaction on. If it was its owner's last active key, the owner's
   * unfinished requests are deleted in batches afterwards, and so their upload URLs.
   */
  revoke(
    idOrName: string,
    options?: { batchRows?: number },
  ): Promise<{ revoked: KeyRecord } | { why: 'unknown' | 'ambiguous' }>;
  /** The audit log: changes since the last call, of any process. Each is returned once. */
  takeEvents(): Promise<KeyEvent[]>;
  /** The first start: true when no key is active. */
  isEmpty(): Promise<boolean>;
}

/** What an owner has now; its audio in the last 24 hours. */
export interface OwnerUse extends Quota {
  readonly audioSeconds: number;
}

/** What owners use. Open uploads, queued requests and stored bytes are counted from the requests themselves. */
export interface LedgerStore {
  /** Every few seconds: classified audio by owner. It remains when a request is deleted. */
  addAudio(seconds: ReadonlyMap<string, number>): Promise<void>;
  /** Of the last 24 hours. */
  audioSeconds(owner: string): Promise<number>;
  /** The command line and metrics: every owner that has something. */
  use(): Promise<Map<string, OwnerUse>>;
}

/** A webhook to deliver. `finish` and `expire` of the RequestStore create it in their transaction; it is deleted with its request. */
export interface Webhook {
  /** The same for every attempt, so that receivers can recognise duplicates. */
  readonly id: string;
  readonly requestId: string;
  readonly owner: string;
  readonly url: string;
  readonly label: string | null;
  readonly status: 'completed' | 'failed' | 'expired';
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** Failed ones. */
  readonly attempts: number;
  readonly trace: Trace | null;
}

/** The webhook sender. */
export interface WebhookStore {
  /** Due webhooks, for this process alone. After `holdMs` without `retry` or `remove` they are due again. */
  claim(options: { limit: number; holdMs: number }): Promise<Webhook[]>;
  /** Delivery failed. */
  retry(id: string, options: { afterMs: number }): Promise<void>;
  /** Delivered, or given up. */
  remove(id: string): Promise<void>;
  /** Metrics: those that are not delivered yet. */
  count(): Promise<number>;
}
