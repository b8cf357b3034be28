// The public types, written out so that the published declarations stand on their own.
// test/published-types.ts compares them with the contract's schemas.
import type { UndertoneError } from './errors.ts';

/** Every emotion a model can name. */
export type Emotion = 'angry' | 'happy' | 'neutral' | 'sad' | 'nervous' | 'surprised' | 'disgusted';

/** The models on offer: `5emotions` adds nervous; `7emotions` adds nervous, surprised and disgusted. */
export type ModelId = '4emotions' | '5emotions' | '7emotions';

/** The confidence of every emotion of the model; together they make 1. */
export interface AllPredictions {
  angry: number;
  happy: number;
  neutral: number;
  sad: number;
  nervous?: number;
  surprised?: number;
  disgusted?: number;
}

/** The answer for one short recording. */
export interface DiscreteResult {
  /** The emotion with the highest confidence. */
  main_emotion: Emotion;
  /** The confidence of `main_emotion`. Under 0.38 you may want to drop it. */
  confidence: number;
  all_predictions: AllPredictions;
  /** With `details`: the model that answered, and its weights. */
  model?: string;
  weights?: string;
  /** With `details`: how long the recording is, and how much of it is speech. Under 0.5 s there is no speech to speak of. */
  duration_seconds?: number;
  speech_seconds?: number;
  /** With `details`: the identifier of the HTTP request, for whoever runs the server. */
  request_id?: string;
  /**
   * Seconds of speech the model heard, with or without `details`; absent when the server did not say. It is not
   * enumerable: JSON and spread copies have exactly what the service answered.
   */
  readonly speechSeconds?: number;
}

/** What came of one of many recordings: its result, or why there is none. */
export type ManyOutcome<File = AudioInput> =
  | { file: File; result: DiscreteResult; error?: undefined }
  | { file: File; result?: undefined; error: UndertoneError };

/** What one step of a long recording was heard as. */
export interface TimelineElement {
  /** Minutes and seconds from the start, as in `00:05`; minutes count on past 99. */
  t: string;
  emotion: Emotion;
  /** Under 0.38 you may want to drop the element. */
  confidence: number;
  /** With `channels: 'separate'`: the channel it was heard in, from 0. */
  channel?: number;
  /** With details: where the step begins and ends, in seconds. */
  start?: number;
  end?: number;
  /** With details: how much of the step is speech. */
  speech_seconds?: number;
  /** With details: false means "no speech", and then the emotion means nothing. */
  speech?: boolean;
  /** With details. */
  all_predictions?: AllPredictions;
}

/** Neighbouring steps of one channel with one emotion, joined. */
export interface Segment {
  /** 0 where channels were mixed. */
  channel: number;
  /** Seconds from the start of the recording. */
  start: number;
  end: number;
  /** Null: no speech. */
  emotion: Emotion | null;
  /** The mean over its steps. */
  confidence: number;
  speech_seconds: number;
}

/** The time line of one long recording, ordered by time, then channel. */
export interface AsynchResult {
  request_id: string;
  status: 'completed';
  emotions: TimelineElement[];
  /** With details: the model that answered, and its weights. */
  model?: string;
  weights?: string;
  /** With details: how long the recording is. */
  duration_seconds?: number;
  /** With details: when this result is erased, ISO 8601. */
  expires_at?: string;
  /** With details. */
  segments?: Segment[];
}

/** An element of the time line with its place as a number. */
export interface TimelineStep extends TimelineElement {
  /** Seconds from the start of the recording to the start of this step. */
  seconds: number;
}

/** `uploading`, `queued` and `processing` are on their way; `expired` is 24 hours after it was made. */
export type RequestStatus = 'uploading' | 'queued' | 'processing' | 'completed' | 'failed' | 'expired';

/** One long recording in the list of them. */
export interface RequestSummary {
  request_id: string;
  /** Your own name for it. */
  label: string | null;
  status: RequestStatus;
  /** The share of the present status that is done, 0 to 1. */
  progress: number;
  /** ISO 8601. */
  created_at: string;
  expires_at: string;
  /** Null until the recording has been read. */
  duration_seconds: number | null;
}

/** The requests of this key, newest first. */
export interface RequestList {
  requests: RequestSummary[];
  /** Give it as `cursor` for the next page; null on the last one. */
  next_cursor: string | null;
}

/** Shares between 0 and 1. */
export interface ModelFigures {
  /** Unweighted average recall. */
  uar: number;
  accuracy: number;
  macro_f1: number;
  /** Expected calibration error. */
  ece: number;
  /** What it was measured on. */
  split: string;
  /** UAR by corpus: new speakers of the corpora that were trained on. */
  new_speakers: Record<string, number>;
  /** UAR by corpus, of corpora that were not trained on. */
  never_heard: Record<string, number>;
}

/** The models a server offers and the weights behind them. */
export interface ModelList {
  version: string;
  weights: { id: string; licence: string; commercial_use: boolean; summary: string };
  models: {
    id: ModelId;
    /** Whether this model answers when none is named. */
    default: boolean;
    emotions: Emotion[];
    /** How well the model did on voices it had never heard. */
    figures: ModelFigures | null;
  }[];
}

/**
 * How the service explains a refusal (RFC 9457), with figures where they help. A recording that is too short
 * or too long has its figures a second time, under the names that older clients read.
 */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  /** The identifier of the HTTP request, for whoever runs the server. */
  request_id: string;
  min_seconds?: number;
  max_seconds?: number;
  actual_seconds?: number;
  error_code?: string;
  error?: string;
  min_duration_seconds?: number;
  max_duration_seconds?: number;
  actual_duration_seconds?: number;
  min_sample_rate?: number;
  max_sample_rate?: number;
  actual_sample_rate?: number;
  max_channels?: number;
  actual_channels?: number;
  max_bytes?: number;
  limit_bytes?: number;
  used_bytes?: number;
  retry_after_seconds?: number;
  missing_parts?: number[];
  wrong_parts?: number[];
}

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

/** `mix` hears one voice in all channels together, `separate` hears each of up to 8 channels apart. */
export type ChannelMode = 'mix' | 'separate';

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

/** How the samples of a stream are written. */
export type StreamEncoding = 'pcm_s16le' | 'pcm_f32le' | 'mulaw' | 'alaw';

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

/** The emotion in the last 5 seconds of one channel of a stream. */
export interface StreamPrediction {
  /** Minutes and seconds of `start`. */
  t: string;
  /** Where the window begins and ends, in seconds of what was written. */
  start: number;
  end: number;
  channel: number;
  main_emotion: Emotion;
  confidence: number;
  all_predictions: AllPredictions;
  speech_seconds: number;
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
