const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;

/** The default and the allowed values of a setting. */
export interface Range {
  readonly default: number;
  readonly min: number;
  readonly max: number;
}

/** Tolerance of the length limits: recorders and codecs pad. */
export const LENGTH_TOLERANCE_SECONDS = 0.05;

/** Accepted sample rates, in hertz. */
export const SAMPLE_RATE = { min: 8_000, max: 192_000, ideal: 44_100 } as const;

export const DISCRETE_LIMITS = {
  minSeconds: 4,
  maxSeconds: 10,
  /** Ten seconds of 192 kHz stereo in 64-bit floats are 31 MB. */
  maxFileBytes: 32 * MIB,
  /** Ten seconds of samples with all their digits are 11 MB. */
  maxJsonBytes: 12 * MIB,
  /** The sample rate of a JSON payload. */
  payloadSampleRate: 44_100,
  /** Resamplers overshoot: samples up to this magnitude are clipped to 1, larger ones are refused. */
  maxSampleMagnitude: 2,
} as const;

export const ASYNCH_LIMITS = {
  minSeconds: 5,
  /** A gigabyte of the lowest-rate WAV lasts 37 hours; compressed silence could last years. */
  maxSeconds: 48 * 60 * 60,
  maxFileBytes: GIB,
  maxParts: 10_000,
  maxFileNameLength: 255,
  /** With `channels=separate`. */
  maxChannels: 8,
  maxLabelLength: 100,
  maxWebhookUrlLength: 2_000,
  maxIdempotencyKeyLength: 255,
  /** All data of a request is erased this long after it was created. */
  retentionSeconds: 24 * 60 * 60,
  /** Tombstone retention: expired and deleted requests answer 410 for this much longer. */
  tombstoneSeconds: 24 * 60 * 60,
  /** Minimum tail: a shorter last step is dropped. */
  minTailSeconds: 0.1,
  /** Of a result: steps, for every channel that is analysed separately. */
  maxElements: 200_000,
  /** A request fails after this many attempts that crashed or failed. */
  maxAttempts: 3,
} as const;

/** Lifetime of a browser token. */
export const TOKEN_SECONDS: Range = { default: 600, min: 60, max: 3_600 };

/** Seconds between two predictions for a long recording. */
export const INTERVAL_SECONDS: Range = { default: 5, min: 1, max: 60 };

/** Page size of the list of requests. */
export const LIST_LIMIT: Range = { default: 50, min: 1, max: 200 };

/** Minimum speech in a step; with less, its emotion is meaningless and the step counts as "no speech". */
export const MIN_SPEECH_SECONDS = 0.5;

/** Delays between the delivery attempts of a webhook. */
export const WEBHOOK_RETRY_SECONDS = [5, 30, 2 * 60, 10 * 60, 60 * 60, 6 * 60 * 60] as const;

export const STREAM_LIMITS = {
  /** Each prediction covers this much of the latest audio. */
  windowSeconds: 5,
  /** With an interval shorter than the window, the first prediction comes this early. */
  firstSeconds: 4,
  /** Minimum tail: at the end, this much uncovered audio gets a last prediction. */
  minTailSeconds: 1,
  intervalSeconds: { default: 5, min: 1, max: 10 },
  maxChannels: 2,
  maxMessageBytes: 4 * MIB,
  /** Idle timeout: a stream without audio for this long is closed. */
  idleSeconds: 30,
  /** Maximum window latency; beyond it the server is overloaded. */
  lagSeconds: 10,
} as const;

/** Settings of the clients. `pollIntervalMs` is in milliseconds in every language. */
export const CLIENT_LIMITS = {
  partSize: { default: 5 * MIB, min: MIB, max: 100 * MIB },
  maxThreads: { default: 3, min: 1, max: 64 },
  /** Retries per upload part. */
  uploadRetries: { default: 3, min: 0, max: 100 },
  /** Retries of every other asynch call. */
  retryAttempts: { default: 5, min: 0, max: 100 },
  maxTries: { default: 20, min: 1, max: 100 },
  pollIntervalMs: { default: 5_000, min: 1_000, max: 60_000 },
} as const satisfies Record<string, Range>;
