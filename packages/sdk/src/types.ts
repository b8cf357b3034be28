import type {
  ChannelMode,
  ModelId,
  RequestState,
  StreamEncoding,
  TimelineElement,
  DiscreteResult as WireDiscreteResult,
  Problem as WireProblem,
  StreamPrediction as WireStreamPrediction,
} from '@undertone/contract';

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
} from '@undertone/contract';

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

/** The server's explanation of an error (RFC 9457), with the figures that help to fix the request. */
export interface Problem extends Omit<WireProblem, 'code'> {
  /** The code to branch on. Newer servers may send codes that this client does not know. */
  code: string;
}

/** The emotion in the last 5 seconds of one channel of a stream. */
export interface StreamPrediction extends Omit<WireStreamPrediction, 'type'> {}

/**
 * A recording: the path of a file (not in a browser), its bytes, a Blob or File, or a stream of bytes
 * (web streams, Node streams and async iterables alike).
 */
export type AudioInput =
  | string
  | URL
  | Uint8Array
  | ArrayBuffer
  | Blob
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array>;

/** How far a recording has come. */
export interface Progress {
  status: 'uploading' | 'queued' | 'processing' | 'completed';
  /** The share of the present status that is done, 0 to 1. */
  progress: number;
  /** The request it is about, once the server has given it a name. */
  requestId?: string;
  /** Bytes sent so far; while uploading. */
  sentBytes?: number;
  /** Bytes to send in all; while uploading. */
  totalBytes?: number;
}

export type ProgressListener = (progress: Progress) => void;

/** Those of the server; this client itself writes debug, info, warn and error. */
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

export interface ClientOptions {
  /** Read from SERVICE_API_KEY when absent. */
  apiKey?: string | undefined;
  /** Bytes of each upload part: 1 MiB to 100 MiB, 5 MiB when absent. */
  partSize?: number | undefined;
  /** Whether long operations draw a bar when stderr is a terminal. True when absent. */
  showProgress?: boolean | undefined;
  /** Parts in flight at the same time: 1 to 64, 3 when absent. */
  maxThreads?: number | undefined;
  /** Retries of every asynch call but the parts: 0 to 100, 5 when absent. */
  retryAttempts?: number | undefined;
  /** The address of the server. Read from SERVICE_URL when absent; http://127.0.0.1:8080 when that is absent too. */
  baseUrl?: string | undefined;
  /** The full address of a discrete endpoint, when it is not below `baseUrl`. Read from SERVICE_DISCRETE_URL when absent. */
  discreteUrl?: string | undefined;
  /** The base address of an asynch interface, when it is not below `baseUrl`. Read from SERVICE_ASYNCH_URL when absent. */
  asynchUrl?: string | undefined;
  /** In any case. Read from SERVICE_LOG_LEVEL when absent; `warn` when that is absent too. */
  logLevel?: LogLevel | undefined;
  /** A standard `fetch` to use in place of the built-in one. */
  fetch?: typeof globalThis.fetch | undefined;
}

export interface DiscreteOptions {
  /** `4emotions` when absent. */
  model?: ModelId | undefined;
  /** Adds `model`, `weights`, `duration_seconds`, `speech_seconds` and `request_id` to the result. */
  details?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

export interface ManyOptions extends DiscreteOptions {
  /** Recordings in flight at the same time: 1 to 64, 4 when absent. */
  concurrency?: number | undefined;
}

/** What may be said about a long recording, however it is sent. */
export interface RecordingOptions {
  /** `4emotions` when absent. */
  model?: ModelId | undefined;
  /** Seconds between two classifications (beta): 1 to 60, 5 when absent. */
  intervalSeconds?: number | undefined;
  /** `mix` when absent. */
  channels?: ChannelMode | undefined;
  /** Your own name for it, up to 100 characters: shown in lists and webhooks. */
  label?: string | undefined;
  /** Told when the result is there (Standard Webhooks): an https address. */
  webhookUrl?: string | undefined;
}

export interface SubmitOptions extends RecordingOptions {
  /** Retries: 0 to 100, 3 when absent. */
  maxRetries?: number | undefined;
  onProgress?: ProgressListener | undefined;
  signal?: AbortSignal | undefined;
}

export interface UploadOptions extends RecordingOptions {
  /** Bytes of each part: 1 MiB to 100 MiB. The client's setting when absent. */
  partSize?: number | undefined;
  /** Retries of each part: 0 to 100, 3 when absent. */
  maxRetries?: number | undefined;
  /** The request_id of an upload of this recording that was interrupted: only what is missing is sent. */
  resume?: string | undefined;
  onProgress?: ProgressListener | undefined;
  signal?: AbortSignal | undefined;
}

export interface ListOptions {
  /** Only those in this status. */
  status?: RequestStatus | undefined;
  /** How many at once: 1 to 200, 50 when absent. */
  limit?: number | undefined;
  /** The `next_cursor` of the page before. */
  cursor?: string | undefined;
  signal?: AbortSignal | undefined;
}

export interface EmotionsOptions {
  /** Whether the result has times, speech, all probabilities and segments. True when absent. */
  details?: boolean | undefined;
  /** How often to ask for the result: 1 to 100, 20 when absent. */
  maxTries?: number | undefined;
  /** Milliseconds between two tries: 1000 to 60000, 5000 when absent. */
  interval?: number | undefined;
  onProgress?: ProgressListener | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Those of `upload` and `emotions` together. Without `maxTries`, `classify` waits until there is an end; without
 * `interval` it asks after half a second at first, then less often, up to every 5 seconds.
 */
export interface ClassifyOptions extends UploadOptions, EmotionsOptions {}

export interface DeleteOptions {
  signal?: AbortSignal | undefined;
}

export interface StreamOptions {
  /** `4emotions` when absent. */
  model?: ModelId | undefined;
  /** Hertz: 8000 to 192000, 44100 when absent. */
  sampleRate?: number | undefined;
  /** `pcm_s16le` when absent. */
  encoding?: StreamEncoding | undefined;
  /** 1 or 2, interleaved; each is heard apart. 1 when absent. */
  channels?: number | undefined;
  /** Seconds between two predictions: 1 to 10, 5 when absent. */
  interval?: number | undefined;
  /** Called when a connection that broke has been made again. */
  onReconnect?: (() => void) | undefined;
  signal?: AbortSignal | undefined;
}

export interface MicrophoneOptions {
  /** What to ask the browser for (`MediaTrackConstraints`), such as a `deviceId` or `echoCancellation`. */
  constraints?: object | undefined;
  /** A `MediaStream` that the page has already, instead of asking for one. */
  mediaStream?: object | undefined;
  /** The address of a file with `MICROPHONE_WORKLET` in it, for pages that forbid `blob:` scripts. */
  workletUrl?: string | undefined;
}

/** The microphone of a page: `client.stream(microphone.format).feed(microphone.readable)`. */
export interface Microphone {
  readonly format: { readonly sampleRate: number; readonly encoding: 'pcm_s16le'; readonly channels: 1 };
  /** Raw samples, until `stop`. */
  readonly readable: ReadableStream<Uint8Array>;
  /** Lets go of the microphone; the stream that is fed with it ends, with a last prediction. */
  stop(): void;
}
