export const API_KEY_HEADER = 'x-api-key';
export const REQUEST_ID_HEADER = 'x-request-id';
/** Seconds of speech the model heard in a discrete clip. */
export const SPEECH_SECONDS_HEADER = 'x-speech-seconds';

/** The same key with the same query is the same request, for 24 hours. */
export const IDEMPOTENCY_KEY_HEADER = 'idempotency-key';

export const DEFAULT_PORT = 8080;

export const PATHS = {
  discrete: '/v1/discrete/emotion',
  /** The same operation as `discrete`, under its older name. */
  discreteShort: '/emotionprediction',
  stream: '/v1/stream',
  /** The same for existing clients that speak Socket.IO. */
  socketIo: '/socket.io/',
  models: '/v1/models',
  asynch: '/v1/asynch',
  /** The same upload for the second generation of existing clients, which asks for results under `/status`. */
  asynchEmotion: '/v1/asynch/emotion',
  rateLimit: '/v1/rate-limit',
  health: '/healthz',
  ready: '/readyz',
  metrics: '/metrics',
  openapi: '/openapi.json',
  docs: '/docs',
} as const;

/** Joined to the asynch base address, by server and clients alike. */
export const ASYNCH_PATHS = {
  initiate: '/upload/initiate',
  complete: '/upload/complete',
  prediction: '/prediction',
  /** GET and POST: the requests of a key, and a whole recording in one call. With `/{request_id}`: DELETE. */
  requests: '/requests',
  /** With `/{request_id}`: what has arrived, and where the rest goes. */
  upload: '/upload',
  webhookSecret: '/webhook-secret',
  /** What presigned URLs point to when this server keeps the parts itself. */
  part: '/upload/:request_id/parts/:part_number',
} as const;

/** Where clients look when no address is configured: a server on this machine. */
export const DEFAULT_URL = `http://127.0.0.1:${DEFAULT_PORT}`;
export const DEFAULT_DISCRETE_URL = DEFAULT_URL + PATHS.discrete;
export const DEFAULT_ASYNCH_URL = DEFAULT_URL + PATHS.asynch;
