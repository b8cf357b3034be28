export const API_KEY_HEADER = 'x-api-key';
export const REQUEST_ID_HEADER = 'x-request-id';
/** Seconds of speech in a short recording. */
export const SPEECH_SECONDS_HEADER = 'x-speech-seconds';

/** For 24 hours, a retried call with the same key and query returns the same request. */
export const IDEMPOTENCY_KEY_HEADER = 'idempotency-key';

export const DEFAULT_PORT = 8080;

export const PATHS = {
  discrete: '/v1/discrete/emotion',
  /** The older name of `discrete`. */
  discreteShort: '/emotionprediction',
  stream: '/v1/stream',
  /** Streams for existing Socket.IO clients. */
  socketIo: '/socket.io/',
  models: '/v1/models',
  /** POST makes a short-lived token from a key. */
  tokens: '/v1/tokens',
  asynch: '/v1/asynch',
  /** `asynch` for existing second-generation clients, which poll `/status` for results. */
  asynchEmotion: '/v1/asynch/emotion',
  rateLimit: '/v1/rate-limit',
  health: '/healthz',
  ready: '/readyz',
  metrics: '/metrics',
  openapi: '/openapi.json',
  docs: '/docs',
} as const;

/** Relative to the asynch base URL, on the server and in clients. */
export const ASYNCH_PATHS = {
  initiate: '/upload/initiate',
  complete: '/upload/complete',
  prediction: '/prediction',
  /** GET lists the requests of a key, POST uploads a whole recording in one call; DELETE with `/{request_id}`. */
  requests: '/requests',
  /** With `/{request_id}`: the parts received and the URLs of the missing ones. */
  upload: '/upload',
  webhookSecret: '/webhook-secret',
  /** The target of presigned URLs when the server itself stores the parts. */
  part: '/upload/:request_id/parts/:part_number',
} as const;

/** The clients' default: a server on this machine. */
export const DEFAULT_URL = `http://127.0.0.1:${DEFAULT_PORT}`;
