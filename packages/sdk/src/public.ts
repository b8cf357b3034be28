// Exports of both entry points.
export {
  ConfigError,
  type ErrorDetails,
  InvalidRequestIdError,
  MissingApiKeyError,
  MissingFileError,
  PredictionFailedError,
  PredictionTimeoutError,
  RequestFailedError,
  UndertoneError,
  UploadFailedError,
} from './errors.ts';
export type { ManyOutcome } from './many.ts';
export { fromMicrophone, MICROPHONE_WORKLET } from './microphone.ts';
export type { EmotionStream } from './stream.ts';
export type * from './types.ts';
