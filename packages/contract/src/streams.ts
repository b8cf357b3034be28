/** The WebSocket subprotocol of streams. */
export const STREAM_PROTOCOL = 'undertone.v1';
/** Browsers cannot set headers on a WebSocket: they send the key as a second subprotocol, `apikey.<key>`. */
export const KEY_PROTOCOL_PREFIX = 'apikey.';

export const STREAM_ENCODINGS = ['pcm_s16le', 'pcm_f32le', 'mulaw', 'alaw'] as const;

/** The encoding of the samples in a stream. */
export type StreamEncoding = (typeof STREAM_ENCODINGS)[number];

/** WebSocket close codes of the server. */
export const STREAM_CLOSE = {
  done: 1000,
  /** A message that is neither audio nor a known text. */
  badMessage: 1007,
  /** The key was revoked, has expired or has used up its hours of audio. */
  keyRefused: 1008,
  messageTooBig: 1009,
  internal: 1011,
  goingAway: 1012,
  overloaded: 1013,
  idle: 4408,
} as const;
