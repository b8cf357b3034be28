import type { ChannelMode, RequestState } from '@undertone/contract';

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
