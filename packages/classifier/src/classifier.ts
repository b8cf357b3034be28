import { availableParallelism } from 'node:os';
import {
  AudioError,
  Ffmpeg,
  MODEL_SAMPLE_RATE,
  memorySource,
  openSound,
  type PcmBlock,
  type RecordingSource,
  readClip,
} from '@undertone/audio';
import { ASYNCH_LIMITS, type ChannelMode, DISCRETE_LIMITS } from '@undertone/contract';
import {
  type Catalog,
  DEFAULT_MODELS_DIR,
  pickWeights,
  readCatalog,
  verifyWeights,
  type WeightsEntry,
} from './catalog.ts';
import { ModelFilesError } from './errors.ts';
import {
  type ClipPrediction,
  MAX_WINDOW_SECONDS,
  MIN_WINDOW_SECONDS,
  type Prediction,
} from './prediction.ts';
import { classifyRecording, type RecordingPrediction, watchProgress } from './recording.ts';
import type { Priority } from './scheduler.ts';
import { type QueueStats, TaskQueue } from './task-queue.ts';

export interface ClassifierOptions {
  modelsDir?: string;
  /** Any name in the catalogue. */
  weights?: string;
  /** Inference threads; one for each core unless told. */
  workers?: number;
  /** The most clips that wait. */
  queueLimit?: number;
  /** A thread that works longer than this on one task counts as lost and is replaced. */
  stuckAfterMs?: number;
  /** Null for none; looked for on the PATH each time it is needed where not given. */
  ffmpegPath?: string | null;
}

/** One short recording: a file in any format, or prepared samples as JSON. */
export interface Clip {
  readonly kind: 'file' | 'json';
  readonly bytes: Uint8Array;
}

export class Classifier {
  readonly catalog: Catalog;
  readonly weights: WeightsEntry;
  readonly weightsName: string;
  readonly #queue: TaskQueue;
  readonly #ffmpeg: Ffmpeg;

  /** Rejects with ModelFilesError when the model is not there, is not what its catalogue says, or cannot be run. */
  static async start(options: ClassifierOptions = {}): Promise<Classifier> {
    // The ONNX runtime would report its use to its makers. It reads this when the first thread loads it.
    process.env['ORT_DISABLE_TELEMETRY'] = '1';
    const { modelsDir = DEFAULT_MODELS_DIR, weights: name = 'research' } = options;
    const threads = atLeastOne('workers', options.workers ?? availableParallelism());
    const queueLimit = atLeastOne('queueLimit', options.queueLimit ?? Math.min(256, 32 * threads));
    const stuckAfterMs = atLeastOne('stuckAfterMs', options.stuckAfterMs ?? 30_000);
    const catalog = await readCatalog(modelsDir);
    const weights = pickWeights(catalog, name);
    const modelPath = await verifyWeights(modelsDir, weights);
    const thread = { modelPath, models: catalog.models, stuckAfterMs };
    const queue = await TaskQueue.start({ threads, queueLimit, thread }).catch((cause: Error) => {
      throw new ModelFilesError(`The model file ${modelPath} cannot be run: ${cause.message}`, { cause });
    });
    return new Classifier(catalog, name, weights, queue, new Ffmpeg({ path: options.ffmpegPath }));
  }

  private constructor(
    catalog: Catalog,
    weightsName: string,
    weights: WeightsEntry,
    queue: TaskQueue,
    ffmpeg: Ffmpeg,
  ) {
    this.catalog = catalog;
    this.weightsName = weightsName;
    this.weights = weights;
    this.#queue = queue;
    this.#ffmpeg = ffmpeg;
  }

  /**
   * One short recording, whole: decoded, checked and classified in one trip to a thread. Formats other than WAV go
   * through ffmpeg first. The bytes must not be changed any more.
   */
  async classifyClip(clip: Clip, { signal }: { signal?: AbortSignal } = {}): Promise<ClipPrediction> {
    try {
      return await (clip.kind === 'json'
        ? this.#classifyJson(clip.bytes, signal)
        : this.#classifyFile(clip.bytes, signal));
    } finally {
      this.#queue.requestDone();
    }
  }

  /** A long recording, at the lowest priority. Reads on only as fast as windows are classified. */
  classifyRecording(
    source: RecordingSource,
    options: {
      stepSeconds: number;
      channels?: ChannelMode;
      signal?: AbortSignal;
      onProgress?: (share: number) => void;
    },
  ): Promise<RecordingPrediction> {
    const { stepSeconds, channels = 'mix', signal, onProgress } = options;
    const watched = onProgress === undefined ? source : watchProgress(source, onProgress);
    return this.#translate(
      classifyRecording({
        stepSeconds,
        channels,
        // One more than there should be, whatever is alive: a thread that is done finds the next window waiting.
        inFlight: this.#queue.stats().threads + 1,
        maxSeconds: ASYNCH_LIMITS.maxSeconds,
        signal,
        open: (signal) => openSound(watched, { ffmpeg: this.#ffmpeg, kind: 'recording', signal }),
        decode: async (block, signal) => {
          const task = { kind: 'decode', ...block } as const;
          const { outcome } = await this.#queue.run(task, { priority: 'asynch', signal });
          return outcome.channels;
        },
        classify: (samples, signal) => this.classifyWindow(samples, { priority: 'asynch', signal }),
      }),
    );
  }

  /** 16 kHz mono, 1 to 10 s. The samples must not be changed until the answer is there. */
  async classifyWindow(
    samples: Float32Array,
    { priority, signal }: { priority: Priority; signal?: AbortSignal },
  ): Promise<Prediction> {
    const seconds = samples.length / MODEL_SAMPLE_RATE;
    if (seconds < MIN_WINDOW_SECONDS || seconds > MAX_WINDOW_SECONDS) {
      throw new RangeError(
        `A window must be ${MIN_WINDOW_SECONDS} to ${MAX_WINDOW_SECONDS} s long at ${MODEL_SAMPLE_RATE} Hz; this one has ${samples.length} samples`,
      );
    }
    const task = { kind: 'window', data: samples } as const;
    const { outcome, queueMs } = await this.#queue.run(task, { priority, signal });
    const { models, speechSeconds, inferenceMs } = outcome;
    return { models, speechSeconds, timings: { queueMs, inferenceMs } };
  }

  /** Raw samples of 1 to 10 s, decoded and classified in one trip. Their bytes must not be changed until then. */
  async classifySamples(
    block: PcmBlock,
    { priority, signal }: { priority: Priority; signal?: AbortSignal },
  ): Promise<ClipPrediction> {
    const seconds = (block.outputs.end - block.outputs.start) / MODEL_SAMPLE_RATE;
    const { outcome, queueMs } = await this.#queue.run({ kind: 'clip', ...block }, { priority, signal });
    const { models, speechSeconds, decodeMs, inferenceMs } = outcome;
    const timings = { decodeMs, queueMs, inferenceMs };
    return { models, speechSeconds, seconds, sampleRate: block.format.sampleRate, timings };
  }

  stats(): QueueStats {
    return this.#queue.stats();
  }

  /** How long a discrete request waits that comes after so many others, from the measured pace. */
  expectedWaitMs(requests: number): number {
    return this.#queue.drainMs(requests);
  }

  /** Takes no new work, answers everything that was accepted, then ends the threads. */
  close(): Promise<void> {
    return this.#queue.close();
  }

  async #classifyFile(bytes: Uint8Array, signal: AbortSignal | undefined): Promise<ClipPrediction> {
    const started = performance.now();
    const read = openSound(memorySource(bytes), { ffmpeg: this.#ffmpeg, kind: 'clip', signal }).then(
      readClip,
    );
    const { block, seconds } = await this.#translate(read);
    const readMs = performance.now() - started;
    const prediction = await this.classifySamples(block, { priority: 'discrete', ...(signal && { signal }) });
    const timings = { ...prediction.timings, decodeMs: readMs + prediction.timings.decodeMs };
    return { ...prediction, seconds, timings };
  }

  async #classifyJson(data: Uint8Array, signal: AbortSignal | undefined): Promise<ClipPrediction> {
    const options = { priority: 'discrete', signal } as const;
    const { outcome, queueMs } = await this.#queue.run({ kind: 'json', data }, options);
    const { models, speechSeconds, seconds, decodeMs, inferenceMs } = outcome;
    const timings = { decodeMs, queueMs, inferenceMs };
    return { models, speechSeconds, seconds, sampleRate: DISCRETE_LIMITS.payloadSampleRate, timings };
  }

  /** A machine without room for one more ffmpeg is as busy as one with a full queue. */
  async #translate<T>(work: Promise<T>): Promise<T> {
    return work.catch((error: unknown) => {
      throw error instanceof AudioError && error.code === 'overloaded' ? this.#queue.overloaded() : error;
    });
  }
}

function atLeastOne(name: string, value: number): number {
  if (Number.isInteger(value) && value >= 1) return value;
  throw new RangeError(`${name} must be a positive integer, not ${value}`);
}
