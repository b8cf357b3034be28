/**
 * The life of an asynch request:
 *
 *   uploading -> queued -> processing -> completed | failed
 *
 * A worker that stops or dies gives its request back to `queued`. Any state becomes `expired` 24 hours after
 * the request was made.
 */
export const REQUEST_STATES = [
  'uploading',
  'queued',
  'processing',
  'completed',
  'failed',
  'expired',
] as const;

export type RequestState = (typeof REQUEST_STATES)[number];

/** States in which a result is still to come. */
export const PENDING_STATES = ['uploading', 'queued', 'processing'] as const satisfies RequestState[];
