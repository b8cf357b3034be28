import type { ErrorCode, ModelId, RequestState } from '@undertone/contract';

/**
 * The life of a request, in words:
 *
 * - It is made `uploading`. Only then do parts arrive, and a part that arrives again replaces itself.
 * - When the sender names every part with the ETag it was acknowledged with, it becomes `queued`; parts no longer
 *   change from then on.
 * - A worker that holds the job's lease makes it `processing` and writes that lease into it. From then on only the
 *   holder of this very lease can report progress, complete it or fail it: a worker that was thought dead and comes
 *   back finds the door closed.
 * - A worker that stops or dies gives it back to `queued`.
 * - `completed` holds the result, `failed` the problem. Neither changes again.
 * - 24 hours after it was made any of them becomes `expired`: result, problem and parts are gone, and what is left
 *   only says that there was something. A week later that is gone as well.
 * - It can be deleted at any time, which leaves nothing.
 *
 * Each step is one conditional write that says whether it happened, so that two hands on one request cannot undo
 * each other's work, and a crash leaves it before the step or after it.
 */
export interface AsynchRequest {
  readonly id: string;
  readonly owner: string;
  readonly uploadId: string;
  readonly model: ModelId;
  readonly intervalSeconds: number;
  readonly partCount: number;
  readonly state: RequestState;
  /** The share of the present state that is done, 0 to 1. */
  readonly progress: number;
  readonly createdAt: number;
  readonly expiresAt: number;
}

export type NewRequest = Omit<AsynchRequest, 'state' | 'progress'>;

export interface Part {
  readonly number: number;
  /** Its name in the BlobStore. */
  readonly blob: string;
  /** MD5 in hexadecimal. */
  readonly etag: string;
  readonly bytes: number;
}

/** Why a request failed, as its owner will be told. */
export interface Failure {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly figures: Readonly<Record<string, unknown>>;
}

export type Outcome = { readonly result: string } | { readonly failure: Failure };

export type AddedPart =
  | { readonly added: true; readonly replaced: string | null }
  | { readonly added: false; readonly why: 'not_uploading' | 'too_large' };

export interface RequestStore {
  /** Initiate. */
  create(request: NewRequest): Promise<void>;
  /** Every route. Null when unknown. One past its time is `expired`, whether or not the sweeper has been there. */
  find(id: string): Promise<AsynchRequest | null>;
  /** A part that is safely stored. `replaced` is the blob it makes useless. */
  addPart(id: string, part: Part, limits: { maxTotalBytes: number }): Promise<AddedPart>;
  /** A part that begins to arrive: what the others already take. */
  bytesBeside(id: string, partNumber: number): Promise<number>;
  /** Complete, to name what is wrong; the worker, to read; the sweeper. In order of their numbers. */
  parts(id: string): Promise<Part[]>;
  /** Complete: uploading -> queued, if these are exactly the parts there are. */
  queue(id: string, etags: ReadonlyMap<number, string>): Promise<boolean>;
  /** The worker: queued (or processing, under a lease that ran out) -> processing. */
  begin(id: string, lease: string): Promise<boolean>;
  /** The worker, while it works. False when the request is no longer its own. */
  report(id: string, lease: string, progress: number): Promise<boolean>;
  /** The worker, twice a second: whether to go on. */
  holds(id: string, lease: string): Promise<boolean>;
  /** The worker: processing -> completed or failed. */
  finish(id: string, lease: string, outcome: Outcome): Promise<boolean>;
  /** The worker, under its own lease or that of a dead one: processing -> queued. */
  giveBack(id: string, lease: string): Promise<boolean>;
  /** The worker and the sweeper, when the blobs are erased. */
  forgetParts(id: string): Promise<void>;
  /** Prediction: what `finish` was given. Null when there is nothing (any more). */
  outcome(id: string): Promise<Outcome | null>;
  /** Delete. False when it was not there. */
  delete(id: string): Promise<boolean>;
  /** The sweeper: everything whose time is over becomes `expired`. Returns the ids. */
  expire(): Promise<string[]>;
  /** The sweeper: removes what became `expired` before this moment, and every trace of what was deleted. */
  forgetExpired(before: number): Promise<void>;
  /** The sweeper, to queue again what a crash kept from the queue. */
  inState(state: RequestState): Promise<string[]>;
  /** Metrics. */
  countByState(): Promise<Partial<Record<RequestState, number>>>;
}
