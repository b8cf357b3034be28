const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;

/** A setting a caller may choose: its default and the values that make sense. */
export interface Range {
  readonly default: number;
  readonly min: number;
  readonly max: number;
}

/** Recorders and codecs pad: a recording may miss a length limit by this much. */
export const LENGTH_TOLERANCE_SECONDS = 0.05;

/** Sample rates of the recordings we take, in hertz. */
export const SAMPLE_RATE = { min: 8_000, max: 192_000, ideal: 44_100 } as const;

export const DISCRETE_LIMITS = {
  minSeconds: 4,
  maxSeconds: 10,
  /** Ten seconds of 192 kHz stereo in 64-bit floats are 31 MB. */
  maxFileBytes: 32 * MIB,
  /** Ten seconds of samples written with all their digits are 11 MB. */
  maxJsonBytes: 12 * MIB,
  /** The rate of the samples in a JSON payload. */
  payloadSampleRate: 44_100,
  /** Resamplers overshoot: a sample up to this size is clipped to 1, a larger one is refused. */
  maxSampleMagnitude: 2,
} as const;

export const ASYNCH_LIMITS = {
  minSeconds: 5,
  /** A gigabyte of the thinnest WAV lasts 37 hours. Compressed silence could last years. */
  maxSeconds: 48 * 60 * 60,
  maxFileBytes: GIB,
  maxParts: 10_000,
  maxFileNameLength: 255,
  /** With `channels=separate`. */
  maxChannels: 8,
  maxLabelLength: 100,
  maxWebhookUrlLength: 2_000,
  maxIdempotencyKeyLength: 255,
  /** Everything about a request is gone this long after it was made. */
  retentionSeconds: 24 * 60 * 60,
  /** So much longer an expired or deleted request is known as one. */
  tombstoneSeconds: 24 * 60 * 60,
  /** A last step shorter than this is not one. */
  minTailSeconds: 0.1,
  /** After so many workers died or failed over one request, the request has failed. */
  maxAttempts: 3,
} as const;

/** Seconds between two classifications of a long recording. */
export const INTERVAL_SECONDS: Range = { default: 5, min: 1, max: 60 };

/** How many requests a list has at once. */
export const LIST_LIMIT: Range = { default: 50, min: 1, max: 200 };

/** A step counts as speech from here on. With less of it, its emotion says nothing: it is "no speech". */
export const MIN_SPEECH_SECONDS = 0.5;

/** After so many seconds each a webhook that was not delivered is sent again. */
export const WEBHOOK_RETRY_SECONDS = [5, 30, 2 * 60, 10 * 60, 60 * 60, 6 * 60 * 60] as const;

export const STREAM_LIMITS = {
  /** An answer is over so much of the latest sound. */
  windowSeconds: 5,
  /** With answers more often than that, the first one comes this early. */
  firstSeconds: 4,
  /** What is left at the end is answered when it is at least this long. */
  minTailSeconds: 1,
  intervalSeconds: { default: 5, min: 1, max: 10 },
  maxChannels: 2,
  maxMessageBytes: 4 * MIB,
  /** A stream that brings nothing for so long is closed. */
  idleSeconds: 30,
  /** A complete window that waits so long for its answer means that the server is overloaded. */
  lagSeconds: 10,
} as const;

/** What the clients let their callers set. `pollIntervalMs` is milliseconds in every language. */
export const CLIENT_LIMITS = {
  partSize: { default: 5 * MIB, min: MIB, max: 100 * MIB },
  maxThreads: { default: 3, min: 1, max: 64 },
  /** Retries of each part of an upload. */
  uploadRetries: { default: 3, min: 0, max: 100 },
  /** Retries of every other asynch call. */
  retryAttempts: { default: 5, min: 0, max: 100 },
  maxTries: { default: 20, min: 1, max: 100 },
  pollIntervalMs: { default: 5_000, min: 1_000, max: 60_000 },
} as const satisfies Record<string, Range>;
