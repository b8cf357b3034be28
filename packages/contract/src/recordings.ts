/**
 * The states of a request for a long recording:
 *
 *   uploading -> queued -> processing -> completed | failed
 *
 * When a worker stops or dies, its request returns to `queued`. From any state a request becomes `expired`
 * 24 hours after it was created.
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

export const CHANNEL_MODES = ['mix', 'separate'] as const;

/** `mix` merges all channels into one; `separate` analyses each of up to 8 channels separately. */
export type ChannelMode = (typeof CHANNEL_MODES)[number];

/** An ETag in comparable form: some HTTP libraries strip the quotes, some proxies mark it as weak. */
export function plainEtag(etag: string): string {
  return etag.trim().replace(/^W\//, '').replaceAll('"', '').toLowerCase();
}
