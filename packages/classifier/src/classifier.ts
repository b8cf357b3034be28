import { availableParallelism } from 'node:os';
import {
  type Catalog,
  DEFAULT_MODELS_DIR,
  pickWeights,
  readCatalog,
  verifyWeights,
  type WeightsEntry,
  type WeightsName,
} from './catalog.ts';
import { ClosedError, ModelFilesError, OverloadedError, WorkerFailedError } from './errors.ts';
import { type InferenceThread, ThreadLostError } from './inference-thread.ts';
import { Pace } from './pace.ts';
import { Pool } from './pool.ts';
import {
  checkSamples,
  MAX_SECONDS,
  outputColumns,
  type Prediction,
  readPrediction,
  SAMPLE_RATE,
} from './prediction.ts';
import { type Priority, type Rules, Scheduler, type Work } from './scheduler.ts';

export interface ClassifierOptions {
  modelsDir?: string;
  weights?: WeightsName;
  /** Inference threads; one for each core unless told. */
  workers?: number;
  /** The most windows that wait, for each priority. A waiting window holds up to 640 kB. */
  queueLimit?: number;
  /** A discrete window that would have to wait longer than this is refused at once. */
  maxWaitMs?: number;
  /** A thread that works longer than this on one batch is given up and replaced. */
  stuckAfterMs?: number;
}

export interface ClassifierStats {
  workers: number;
  busy: number;
  queued: { discrete: number; asynch: number };
  restarts: number;
}

interface Job extends Work {
  samples: Float32Array;
  acceptedAt: number;
  attempts: number;
  settled: boolean;
  resolve: (prediction: Prediction) => void;
  reject: (error: unknown) => void;
}

const MAX_SAMPLES = MAX_SECONDS * SAMPLE_RATE;
const RULES: Omit<Rules, 'queueLimit'> = {
  // Measured with both cores of an x86-64 machine busy: two windows of 2 s take a tenth less time together, two of 5 s
  // 6 to 10 % more. And a request that finds every thread taken waits for a whole batch.
  batchSamples: MAX_SAMPLES / 2,
  discreteTurns: 8,
  reserveMs: 5_000,
};
const ATTEMPTS = 2;

export class Classifier {
  readonly catalog: Catalog;
  readonly weights: WeightsEntry;
  readonly #pool: Pool;
  readonly #scheduler: Scheduler<Job>;
  readonly #pace: Pace;
  readonly #maxWaitMs: number;
  readonly #unsettled = new Set<Promise<Prediction>>();
  #asynchRunning = 0;
  #startFailure: Error | undefined;
  #closed: Promise<void> | undefined;

  /** Rejects with ModelFilesError when the model is not there, is not what its catalogue says, or cannot be run. */
  static async start(options: ClassifierOptions = {}): Promise<Classifier> {
    const { modelsDir = DEFAULT_MODELS_DIR, weights: name = 'research' } = options;
    const workers = atLeastOne('workers', options.workers ?? availableParallelism());
    const queueLimit = atLeastOne('queueLimit', options.queueLimit ?? Math.min(256, 32 * workers));
    const maxWaitMs = atLeastOne('maxWaitMs', options.maxWaitMs ?? 3_000);
    const stuckAfterMs = atLeastOne('stuckAfterMs', options.stuckAfterMs ?? 30_000);
    const catalog = await readCatalog(modelsDir);
    const weights = pickWeights(catalog, name);
    const modelPath = await verifyWeights(modelsDir, weights);
    const pool = await Pool.start({
      size: workers,
      backOffMs: 100,
      thread: {
        modelPath,
        outputs: outputColumns(catalog.models),
        inputSamples: MAX_SAMPLES,
        stuckAfterMs,
      },
      onReady: () => classifier.#onReady(),
      onStartFailed: (error, none) => classifier.#onStartFailed(error, none),
    }).catch((cause: Error) => {
      throw new ModelFilesError(`The model file ${modelPath} cannot be run: ${cause.message}`, { cause });
    });
    const scheduler = new Scheduler<Job>({ ...RULES, queueLimit });
    const classifier = new Classifier(catalog, weights, scheduler, pool, maxWaitMs);
    return classifier;
  }

  private constructor(
    catalog: Catalog,
    weights: WeightsEntry,
    scheduler: Scheduler<Job>,
    pool: Pool,
    maxWaitMs: number,
  ) {
    this.catalog = catalog;
    this.weights = weights;
    this.#scheduler = scheduler;
    this.#pool = pool;
    this.#maxWaitMs = maxWaitMs;
    const warmUps = [...pool.threads].map((thread) => thread.warmUp);
    this.#pace = new Pace(
      warmUps.reduce((sum, { milliseconds }) => sum + milliseconds, 0),
      warmUps.reduce((sum, { samples }) => sum + samples, 0),
    );
  }

  /**
   * 1 to 10 s of 16 kHz mono. The samples must not be changed until the answer is there.
   * Rejects with RangeError, OverloadedError, ClosedError, WorkerFailedError or the signal's reason.
   */
  async classify(
    samples: Float32Array,
    options: { priority: Priority; signal?: AbortSignal },
  ): Promise<Prediction> {
    if (this.#closed !== undefined) throw new ClosedError();
    options.signal?.throwIfAborted();
    checkSamples(samples);
    if (this.#startFailure !== undefined) throw new WorkerFailedError(this.#startFailure.message);
    const answer = this.#accept(samples, options.priority, options.signal);
    this.#unsettled.add(answer);
    try {
      return await answer;
    } finally {
      this.#unsettled.delete(answer);
    }
  }

  stats(): ClassifierStats {
    const threads = [...this.#pool.threads];
    return {
      workers: threads.length,
      busy: threads.filter((thread) => thread.busy).length,
      queued: { discrete: this.#scheduler.waiting('discrete'), asynch: this.#scheduler.waiting('asynch') },
      restarts: this.#pool.restarts,
    };
  }

  /** Takes no new work, answers everything that was accepted, then ends the threads. */
  close(): Promise<void> {
    this.#closed ??= Promise.allSettled(this.#unsettled).then(() => this.#pool.close());
    return this.#closed;
  }

  #accept(samples: Float32Array, priority: Priority, signal: AbortSignal | undefined): Promise<Prediction> {
    const { promise, resolve, reject } = Promise.withResolvers<Prediction>();
    const abort = () => {
      this.#scheduler.remove(job);
      job.reject(signal?.reason);
    };
    const settle = () => {
      job.settled = true;
      signal?.removeEventListener('abort', abort);
    };
    const job: Job = {
      priority,
      length: samples.length,
      samples,
      acceptedAt: performance.now(),
      attempts: 0,
      settled: false,
      resolve: (prediction) => {
        settle();
        resolve(prediction);
      },
      reject: (error) => {
        settle();
        reject(error);
      },
    };
    const wait = this.#pace.drainMs(this.#scheduler.waitingSamples(priority), this.#pool.threads.size);
    const tooLong = priority === 'discrete' && wait > this.#maxWaitMs;
    if (tooLong || !this.#scheduler.offer(job, job.acceptedAt)) {
      throw new OverloadedError(Math.max(1, Math.ceil(wait / 1_000)));
    }
    signal?.addEventListener('abort', abort, { once: true });
    this.#dispatch();
    return promise;
  }

  #dispatch(): void {
    for (;;) {
      const idle = this.#pool.idle();
      const [thread] = idle;
      if (thread === undefined) return;
      const batch = this.#scheduler.next({
        now: performance.now(),
        threads: this.#pool.threads.size,
        idle: idle.length,
        asynchRunning: this.#asynchRunning,
      });
      if (batch.length === 0) return;
      void this.#serve(thread, batch);
    }
  }

  async #serve(thread: InferenceThread, batch: Job[]): Promise<void> {
    const startedAt = performance.now();
    const asynch = batch[0]?.priority === 'asynch' ? 1 : 0;
    this.#asynchRunning += asynch;
    try {
      const result = await thread.run(batch.map((job) => job.samples));
      this.#pace.observe(
        result.inferenceMs,
        batch.reduce((sum, job) => sum + job.length, 0),
      );
      batch.forEach((job, row) => {
        const queueMs = startedAt - job.acceptedAt;
        const window = { samples: job.length, queueMs, batch: batch.length };
        job.resolve(readPrediction(this.catalog.models, result, row, window));
      });
    } catch (error) {
      if (error instanceof ThreadLostError) this.#retry(batch, error);
      else for (const job of batch) job.reject(error);
    } finally {
      this.#asynchRunning -= asynch;
      this.#dispatch();
    }
  }

  #retry(batch: Job[], error: ThreadLostError): void {
    const again = batch.filter((job) => !job.settled && ++job.attempts < ATTEMPTS);
    this.#scheduler.giveBack(again);
    for (const job of batch) {
      if (!job.settled && !again.includes(job)) {
        job.reject(new WorkerFailedError(`Two threads were lost over this window. ${error.message}`));
      }
    }
  }

  #onReady(): void {
    this.#startFailure = undefined;
    this.#dispatch();
  }

  /** Without a thread nobody would ever be answered: better a clear refusal until one starts again. */
  #onStartFailed(error: Error, none: boolean): void {
    if (!none) return;
    this.#startFailure = error;
    const refusal = new WorkerFailedError(`No inference thread can be started: ${error.message}`);
    for (const job of this.#scheduler.drain()) job.reject(refusal);
  }
}

function atLeastOne(name: string, value: number): number {
  if (Number.isInteger(value) && value >= 1) return value;
  throw new RangeError(`${name} must be a positive integer, not ${value}`);
}
