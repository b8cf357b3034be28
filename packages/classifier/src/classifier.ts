import { availableParallelism } from 'node:os';
import {
  AudioError,
  type Confinement,
  convertClip,
  Ffmpeg,
  isWav,
  MODEL_SAMPLE_RATE,
  type PcmBlock,
  type RecordingSource,
  Slots,
} from '@undertone/audio';
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
import type { Task } from './protocol.ts';
import { classifyRecording, type RecordingOptions, type RecordingPrediction } from './recording.ts';
import { type QueueStats, type TaskOptions, TaskQueue } from './task-queue.ts';

export interface ClassifierOptions {
  modelsDir?: string;
  /** A name in the catalogue. */
  weights?: string;
  /** Number of inference threads. Default: one per core. */
  workers?: number;
  /** Maximum number of waiting clips. */
  queueLimit?: number;
  /** Null for no ffmpeg. Default: looked up on the PATH for each recording. */
  ffmpegPath?: string | null;
}

/** A short recording: a file in any format, or samples as JSON. */
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

  /** Rejects with ModelFilesError if the model is missing, does not match its catalogue, or cannot be run. */
  static async start(options: ClassifierOptions = {}): Promise<Classifier> {
    // Disables the ONNX runtime's telemetry. It reads this when the first thread loads it.
    process.env['ORT_DISABLE_TELEMETRY'] = '1';
    const { modelsDir = DEFAULT_MODELS_DIR, weights: name = 'research' } = options;
    const threads = atLeastOne('workers', options.workers ?? availableParallelism());
    const queueLimit = atLeastOne('queueLimit', options.queueLimit ?? Math.min(256, 32 * threads));
    const catalog = await readCatalog(modelsDir);
    const weights = pickWeights(catalog, name);
    const modelPath = await verifyWeights(modelsDir, weights);
    const thread = { modelPath, models: catalog.models };
    const ffmpeg = new Ffmpeg({ path: options.ffmpegPath, slots: new Slots(Math.max(2, threads)) });
    // Runs beside the start of the threads, so that the first recording does not wait for it.
    const confined = ffmpeg.confinement();
    const queue = await TaskQueue.start({ threads, queueLimit, thread }).catch((cause: Error) => {
      throw new ModelFilesError(`The model file ${modelPath} cannot be run: ${cause.message}`, { cause });
    });
    await confined;
    return new Classifier(catalog, name, weights, queue, ffmpeg);
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
   * Classifies a short recording in one trip to a thread, which parses, checks, decodes and classifies it. Formats other
   * than WAV go through ffmpeg first. Owners of waiting recordings take turns. The bytes must not change until this settles.
   */
  async classifyClip(
    { kind, bytes }: Clip,
    { owner, signal }: Omit<TaskOptions, 'priority'> = {},
  ): Promise<ClipPrediction> {
    const options = { priority: 'discrete', owner, signal } as const;
    try {
      if (kind === 'json') return await this.#run({ kind, data: bytes }, options);
      if (!isWav(bytes)) return await this.#convertAndClassify(bytes, options);
      try {
        return await this.#run({ kind: 'clip', data: bytes }, options);
      } catch (error) {
        if (!isCompressedWav(error)) throw error;
        return await this.#convertAndClassify(bytes, options);
      }
    } finally {
      this.#queue.requestDone();
    }
  }

  classifyRecording(source: RecordingSource, options: RecordingOptions): Promise<RecordingPrediction> {
    const tools = { queue: this.#queue, ffmpeg: this.#ffmpeg };
    return this.#reportOverload(classifyRecording(source, options, tools));
  }

  /** Classifies 1 to 10 s of 16 kHz mono samples. They must not change until this settles. */
  async classifyWindow(samples: Float32Array, options: TaskOptions): Promise<Prediction> {
    const seconds = samples.length / MODEL_SAMPLE_RATE;
    if (seconds < MIN_WINDOW_SECONDS || seconds > MAX_WINDOW_SECONDS) {
      throw new RangeError(
        `A window must be ${MIN_WINDOW_SECONDS} to ${MAX_WINDOW_SECONDS} s long at ${MODEL_SAMPLE_RATE} Hz; this one has ${samples.length} samples`,
      );
    }
    return this.#run({ kind: 'window', data: samples }, options);
  }

  /** Decodes and classifies 1 to 10 s of raw samples in one trip. Their bytes must not change until this settles. */
  classifySamples(block: PcmBlock, options: TaskOptions): Promise<ClipPrediction> {
    return this.#run({ kind: 'samples', ...block }, options);
  }

  /** How ffmpeg is confined, or null if there is none. */
  ffmpegConfinement(): Promise<Confinement | null> {
    return this.#ffmpeg.confinement();
  }

  stats(): QueueStats {
    return this.#queue.stats();
  }

  /** Estimated wait of a discrete request behind this many others. */
  expectedWaitMs(requests: number): number {
    return this.#queue.drainMs(requests);
  }

  /** Refuses new work, finishes accepted work, then ends the threads. */
  close(): Promise<void> {
    return this.#queue.close();
  }

  async #run(task: Exclude<Task, { kind: 'decode' }>, options: TaskOptions): Promise<ClipPrediction> {
    const { output, queueMs } = await this.#queue.run(task, options);
    const { decodeMs, inferenceMs, ...rest } = output;
    return { ...rest, timings: { decodeMs, queueMs, inferenceMs } };
  }

  async #convertAndClassify(file: Uint8Array, options: TaskOptions): Promise<ClipPrediction> {
    const started = performance.now();
    const { signal } = options;
    const { format, data } = await this.#reportOverload(convertClip(file, { ffmpeg: this.#ffmpeg, signal }));
    const convertMs = performance.now() - started;
    const prediction = await this.#run({ kind: 'clip', data, pcm: format }, options);
    prediction.timings.decodeMs += convertMs;
    return prediction;
  }

  /** Too many ffmpeg processes are reported in the same way as a full queue. */
  #reportOverload<T>(work: Promise<T>): Promise<T> {
    return work.catch((error: unknown) => {
      throw error instanceof AudioError && error.code === 'overloaded' ? this.#queue.overloaded() : error;
    });
  }
}

function isCompressedWav(error: unknown): boolean {
  return error instanceof AudioError && error.code === 'unsupported_media_type';
}

function atLeastOne(name: string, value: number): number {
  if (Number.isInteger(value) && value >= 1) return value;
  throw new RangeError(`${name} must be a positive integer, not ${value}`);
}
