/** The subprotocol of streams over WebSocket. */
export const STREAM_PROTOCOL = 'undertone.v1';
/** Browsers cannot set headers on a WebSocket: they offer the key as one more subprotocol, `apikey.<key>`. */
export const KEY_PROTOCOL_PREFIX = 'apikey.';

/** How the samples of a stream are written. */
export const STREAM_ENCODINGS = ['pcm_s16le', 'pcm_f32le', 'mulaw', 'alaw'] as const;
export type StreamEncoding = (typeof STREAM_ENCODINGS)[number];

/** Why a server closes a stream. */
export const STREAM_CLOSE = {
  done: 1000,
  /** A message that is neither audio nor a text this side knows. */
  badMessage: 1007,
  /** The key was revoked, or has expired. */
  keyRefused: 1008,
  messageTooBig: 1009,
  internal: 1011,
  goingAway: 1012,
  overloaded: 1013,
  idle: 4408,
} as const;
