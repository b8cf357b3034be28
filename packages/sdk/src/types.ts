import type {
  ChannelMode,
  ModelId,
  RequestState,
  StreamEncoding,
  TimelineElement,
  TokenScope,
  DiscreteResult as WireDiscreteResult,
  StreamPrediction as WireStreamPrediction,
} from '@undertone/contract';
import type { UndertoneError } from './errors.ts';

export type {
  AllPredictions,
  AsynchResult,
  ChannelMode,
  Emotion,
  ModelFigures,
  ModelId,
  ModelList,
  RequestList,
  RequestSummary,
  Segment,
  StreamEncoding,
  TimelineElement,
  TokenScope,
} from '@undertone/contract';
export type { Problem } from './errors.ts';

/** The emotion of one short recording. */
export interface DiscreteResult extends WireDiscreteResult {
  /**
   * Seconds of speech in the recording, with or without `details`; absent when the server did not send it. Not
   * enumerable: JSON and spread copies contain exactly what the server sent.
   */
  readonly speechSeconds?: number;
}

/** A step of the timeline with its start as a number. */
export interface TimelineStep extends TimelineElement {
  /** Seconds from the start of the recording. */
  seconds: number;
}

/** `uploading`, `queued` and `processing` are pending. A request becomes `expired` after 24 hours. */
export type RequestStatus = RequestState;

/** The emotion in the last 5 seconds of one channel of a stream. */
export interface StreamPrediction extends Omit<WireStreamPrediction, 'type'> {}

/**
 * A recording: the path of a file (not in a browser), its bytes, a Blob or File, or a stream of bytes (a web stream, a
 * Node stream or an async iterable).
 */
export type AudioInput =
  | string
  | URL
  | Uint8Array
  | ArrayBuffer
  | Blob
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array>;

export interface Progress {
  status: 'uploading' | 'queued' | 'processing' | 'completed';
  /** How much of the current status is done, 0 to 1. */
  progress: number;
  /** The request ID, once the server has assigned one. */
  requestId?: string;
  /** Bytes sent so far, while uploading. */
  sentBytes?: number;
  /** Bytes in total, while uploading. */
  totalBytes?: number;
}

export type ProgressListener = (progress: Progress) => void;

/** The same levels as on the server. This client logs debug, info, warn and error. */
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

/** `console` is one, and so are the loggers of most libraries. */
export interface Logger {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

export interface ClientOptions {
  /** Default: SERVICE_API_KEY. */
  apiKey?: string | undefined;
  /** Size of the upload parts in bytes, 1 MiB to 100 MiB. Default: 5 MiB. */
  partSize?: number | undefined;
  /** Show a progress bar for long operations if stderr is a terminal. Default: true. */
  showProgress?: boolean | undefined;
  /** Concurrent part uploads, 1 to 64. Default: 3. */
  maxThreads?: number | undefined;
  /** Retries of each asynch call, except for parts; 0 to 100. Default: 5. */
  retryAttempts?: number | undefined;
  /** The URL of the server. Default: SERVICE_URL, then http://127.0.0.1:8080. */
  baseUrl?: string | undefined;
  /** The full URL of the discrete endpoint, if it is not below `baseUrl`. Default: SERVICE_DISCRETE_URL. */
  discreteUrl?: string | undefined;
  /** The base URL of the asynch interface, if it is not below `baseUrl`. Default: SERVICE_ASYNCH_URL. */
  asynchUrl?: string | undefined;
  /** Case-insensitive. Default: SERVICE_LOG_LEVEL, then `warn`. */
  logLevel?: LogLevel | undefined;
  /** Milliseconds for each call, including its retries and waits; each call can have its own. Default: no limit. */
  timeout?: number | undefined;
  /** Headers for every request to the server, such as those of a proxy in front of it. Not for streams. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Where messages of `logLevel` and above go. Default: stderr, or the console of a page. */
  logger?: Logger | undefined;
  /** A replacement for the built-in `fetch`. */
  fetch?: typeof globalThis.fetch | undefined;
}

/** What every call can have. */
export interface CallOptions {
  /** Cancels the call: it throws the signal's reason at once, and closes what it has opened. */
  signal?: AbortSignal | undefined;
  /** Milliseconds for the whole call, including its retries and waits. Default: the client's setting. */
  timeout?: number | undefined;
}

export interface DiscreteOptions extends CallOptions {
  /** Default: `4emotions`. */
  model?: ModelId | undefined;
  /** Add `model`, `weights`, `duration_seconds`, `speech_seconds` and `request_id` to the result. */
  details?: boolean | undefined;
}

export interface SamplesOptions extends DiscreteOptions {
  /** In hertz, 8000 to 192000. Default: 44100. */
  sampleRate?: number | undefined;
}

/** `timeout` is that of each recording. */
export interface ManyOptions extends DiscreteOptions {
  /** Concurrent recordings at most, 1 to 64; fewer while the server is busy. Default: 4. */
  concurrency?: number | undefined;
}

/** Options of a long recording. */
export interface RecordingOptions {
  /** Default: `4emotions`. */
  model?: ModelId | undefined;
  /** Seconds between two predictions, 1 to 60. Default: 5. */
  intervalSeconds?: number | undefined;
  /** Default: `mix`. */
  channels?: ChannelMode | undefined;
  /** Your own name for the recording, up to 100 characters, shown in lists and webhooks. */
  label?: string | undefined;
  /** An https URL that is notified when the request has finished (Standard Webhooks). */
  webhookUrl?: string | undefined;
}

export interface SubmitOptions extends RecordingOptions, CallOptions {
  /** 0 to 100. Default: 3. */
  maxRetries?: number | undefined;
  onProgress?: ProgressListener | undefined;
}

export interface UploadOptions extends RecordingOptions, CallOptions {
  /** Size of each part in bytes, 1 MiB to 100 MiB. Default: the client's setting. */
  partSize?: number | undefined;
  /** Retries of each part, 0 to 100. Default: 3. */
  maxRetries?: number | undefined;
  /** The request ID of an interrupted upload of this recording: only the missing parts are sent. */
  resume?: string | undefined;
  onProgress?: ProgressListener | undefined;
}

export interface ListOptions extends CallOptions {
  /** Only requests with this status. */
  status?: RequestStatus | undefined;
  /** Page size, 1 to 200. Default: 50. */
  limit?: number | undefined;
  /** The `next_cursor` of the previous page. */
  cursor?: string | undefined;
}

export interface EmotionsOptions extends CallOptions {
  /** Add times, speech, all confidences and segments to the result. Default: true. */
  details?: boolean | undefined;
  /** Maximum number of polls, 1 to 100. Default: 20. */
  maxTries?: number | undefined;
  /** Milliseconds between two polls, 1000 to 60000. Default: 5000. */
  interval?: number | undefined;
  onProgress?: ProgressListener | undefined;
}

/**
 * The options of `upload` and `emotions`. Without `maxTries`, `classify` waits until the request has finished. Without
 * `interval`, it polls after half a second at first, then less and less often, down to every 5 seconds.
 */
export interface ClassifyOptions extends UploadOptions, EmotionsOptions {}

/** The state of a request for a long recording. */
export interface AsynchStatus {
  request_id: string;
  status: RequestStatus;
  /** How much of the current status is done, 0 to 1. */
  progress: number;
  /** Why it failed or expired. */
  error?: UndertoneError;
}

export interface TokenOptions extends CallOptions {
  /** Seconds until the token expires, 60 to 3600. Default: 600. */
  expiresIn?: number | undefined;
  /** What the token allows. Default: `all`. */
  scope?: TokenScope | undefined;
}

/** A short-lived token: use it as an `apiKey` where the key itself would be exposed, such as in a page. */
export interface Token {
  token: string;
  /** ISO 8601. */
  expires_at: string;
  scope: TokenScope;
}

interface RequestEvent<Status extends 'completed' | 'failed' | 'expired'> {
  type: `request.${Status}`;
  /** Time of the event, ISO 8601. */
  timestamp: string;
  data: {
    request_id: string;
    /** Your own name for the recording, if you gave it one. */
    label: string | null;
    status: Status;
  };
}

/** The body of a webhook. Fetch the result with its `request_id`. */
export type WebhookEvent = RequestEvent<'completed'> | RequestEvent<'failed'> | RequestEvent<'expired'>;

export interface StreamOptions {
  /** Default: `4emotions`. */
  model?: ModelId | undefined;
  /** In hertz, 8000 to 192000. Default: 44100. */
  sampleRate?: number | undefined;
  /** Default: `pcm_s16le`. */
  encoding?: StreamEncoding | undefined;
  /** 1 or 2, interleaved; each is analysed separately. Default: 1. */
  channels?: number | undefined;
  /** Seconds between two predictions, 1 to 10. Default: 5. */
  interval?: number | undefined;
  /** Called after a lost connection has been re-established. */
  onReconnect?: (() => void) | undefined;
  signal?: AbortSignal | undefined;
  /** Milliseconds to connect. Default: 10000. */
  timeout?: number | undefined;
}

export interface MicrophoneOptions {
  /** `MediaTrackConstraints` for the browser, such as a `deviceId` or `echoCancellation`. */
  constraints?: object | undefined;
  /** A `MediaStream` to use instead of asking for a microphone. */
  mediaStream?: object | undefined;
  /** The URL of a file that contains `MICROPHONE_WORKLET`, for pages that forbid `blob:` scripts. */
  workletUrl?: string | undefined;
}

/** The microphone of a page: `client.stream(microphone.format).feed(microphone.readable)`. */
export interface Microphone {
  readonly format: { readonly sampleRate: number; readonly encoding: 'pcm_s16le'; readonly channels: 1 };
  /** Raw samples, until `stop`. */
  readonly readable: ReadableStream<Uint8Array>;
  /** Releases the microphone. A stream that reads from it ends after a last prediction. */
  stop(): void;
}
