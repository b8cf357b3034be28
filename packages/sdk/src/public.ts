// Exports of both entry points.
export {
  AuthenticationError,
  ConfigError,
  ConnectionFailedError,
  type ErrorDetails,
  InvalidRequestIdError,
  MissingApiKeyError,
  MissingFileError,
  NotFoundError,
  PredictionFailedError,
  PredictionTimeoutError,
  RateLimitError,
  RequestFailedError,
  RequestTimeoutError,
  UndertoneError,
  type UndertoneErrorCode,
  UploadFailedError,
  WebhookVerificationError,
} from './errors.ts';
export type { ManyOutcome } from './many.ts';
export { fromMicrophone, MICROPHONE_WORKLET } from './microphone.ts';
export type { EmotionStream } from './stream.ts';
export type * from './types.ts';
export { type VerifyOptions, type WebhookHeaders, webhooks } from './webhooks.ts';
