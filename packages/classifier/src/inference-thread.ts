import { Worker } from 'node:worker_threads';
import { Activity, type FromThread, type ThreadData, type ToThread } from './protocol.ts';

export interface BatchResult {
  inferenceMs: number;
  /** Output name -> values of all rows, one after another. */
  outputs: Record<string, Float32Array>;
}

export interface ThreadOptions {
  modelPath: string;
  outputs: Record<string, number>;
  /** The most samples of one batch. */
  inputSamples: number;
  /** A batch that takes longer than this is given up, and the thread with it. */
  stuckAfterMs: number;
}

/** The thread ended, or was given up, with work in its hands; another thread may try that work. */
export class ThreadLostError extends Error {
  override readonly name = 'ThreadLostError';
}

interface UnderWay {
  id: number;
  promise: Promise<BatchResult>;
  resolve: (result: BatchResult) => void;
  reject: (error: Error) => void;
  timer: NodeJS.Timeout;
}

/** The main thread's end of one inference thread. It holds one batch at a time. */
export class InferenceThread {
  /** Settles once, when the thread can no longer be used for whatever reason (a wished stop included). */
  readonly ended: Promise<void>;
  readonly warmUp: { milliseconds: number; samples: number };
  readonly worker: Worker;
  readonly #options: ThreadOptions;
  readonly #activity: Int32Array<SharedArrayBuffer>;
  readonly #input: Float32Array<SharedArrayBuffer>;
  readonly #markEnded: () => void;
  #underWay: UnderWay | undefined;
  #usable = true;
  #hasServed = false;
  #id = 0;

  /** Rejects with the thread's own words when the model cannot be loaded. */
  static async start(options: ThreadOptions): Promise<InferenceThread> {
    const activity = new Int32Array(new SharedArrayBuffer(4));
    const input = new Float32Array(new SharedArrayBuffer(options.inputSamples * 4));
    activity[0] = Activity.Busy;
    const workerData: ThreadData = {
      modelPath: options.modelPath,
      outputs: options.outputs,
      activity: activity.buffer,
      input: input.buffer,
    };
    const worker = new Worker(new URL('./thread.ts', import.meta.url), {
      name: 'undertone-inference',
      workerData,
      // Options meant for the main script (--input-type, --inspect) are not the thread's.
      execArgv: [],
    });
    const letLeave = () => waitUntilIdle(activity);
    const forget = () => process.off('exit', letLeave);
    process.on('exit', letLeave);
    worker.once('error', forget).once('exit', forget);
    const first = await firstWord(worker);
    if (first.kind !== 'ready') {
      throw new Error(first.kind === 'unusable' ? first.message : 'the thread spoke out of turn');
    }
    return new InferenceThread(options, worker, activity, input, first);
  }

  private constructor(
    options: ThreadOptions,
    worker: Worker,
    activity: Int32Array<SharedArrayBuffer>,
    input: Float32Array<SharedArrayBuffer>,
    ready: { warmUpMs: number; warmUpSamples: number },
  ) {
    this.#options = options;
    this.worker = worker;
    this.#activity = activity;
    this.#input = input;
    this.warmUp = { milliseconds: ready.warmUpMs, samples: ready.warmUpSamples };
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.#markEnded = resolve;
    worker.on('message', (message: FromThread) => this.#hear(message));
    worker.on('error', (error) => this.#lose(error.message));
    worker.on('exit', (code) => this.#lose(`it ended with code ${code}`));
  }

  get usable(): boolean {
    return this.#usable;
  }

  get busy(): boolean {
    return this.#underWay !== undefined;
  }

  /** Has it ever answered? */
  get hasServed(): boolean {
    return this.#hasServed;
  }

  /** Windows of equal length. Rejects with ThreadLostError when the thread is lost on the way. */
  run(windows: readonly Float32Array[]): Promise<BatchResult> {
    if (!this.#usable) return Promise.reject(new ThreadLostError('The inference thread has ended'));
    if (this.busy) return Promise.reject(new Error('The inference thread is busy with another batch'));
    const length = windows[0]?.length ?? 0;
    windows.forEach((window, row) => {
      this.#input.set(window, row * length);
    });
    const id = ++this.#id;
    const { promise, resolve, reject } = Promise.withResolvers<BatchResult>();
    const timer = setTimeout(() => this.#giveUpIfStuck(), this.#options.stuckAfterMs);
    this.#underWay = { id, promise, resolve, reject, timer };
    this.#activity[0] = Activity.Busy;
    this.#tell({ kind: 'run', id, batch: windows.length, length });
    return promise;
  }

  /** Lets the thread finish what it has, then ends it. */
  async stop(): Promise<void> {
    await this.#underWay?.promise.catch(() => undefined);
    if (this.#usable) this.#tell({ kind: 'stop' });
    await this.ended;
  }

  #tell(message: ToThread): void {
    this.worker.postMessage(message);
  }

  #hear(message: FromThread): void {
    const underWay = this.#underWay;
    if (underWay === undefined || !('id' in message) || message.id !== underWay.id) return;
    this.#underWay = undefined;
    this.#hasServed = true;
    clearTimeout(underWay.timer);
    if (message.kind === 'done') underWay.resolve(message);
    else underWay.reject(new Error(`The model could not be run: ${message.message}`));
  }

  #giveUpIfStuck(): void {
    // After a pause of the whole process the timer comes before the answer: then the thread is idle, not stuck.
    if (Atomics.load(this.#activity, 0) === Activity.Idle) return;
    // Terminating a thread inside the runtime would abort the process, so it is left alone and told to go if it
    // ever returns; it no longer keeps the process alive.
    this.#tell({ kind: 'stop' });
    this.worker.unref();
    this.#lose(`it gave no answer for ${this.#options.stuckAfterMs} ms`);
  }

  #lose(why: string): void {
    this.#usable = false;
    const underWay = this.#underWay;
    this.#underWay = undefined;
    if (underWay !== undefined) {
      clearTimeout(underWay.timer);
      underWay.reject(new ThreadLostError(`The inference thread was lost: ${why}`));
    }
    this.#markEnded();
  }
}

function firstWord(worker: Worker): Promise<FromThread> {
  const { promise, resolve, reject } = Promise.withResolvers<FromThread>();
  const ended = (code: number) => reject(new Error(`the thread ended with code ${code} while starting`));
  worker.once('message', resolve).once('error', reject).once('exit', ended);
  return promise.finally(() => {
    worker.off('message', resolve).off('error', reject).off('exit', ended);
  });
}

/** When the process ends (process.exit, an uncaught error) the runtime is given the time to return. */
function waitUntilIdle(activity: Int32Array<SharedArrayBuffer>): void {
  Atomics.wait(activity, 0, Activity.Busy, 5_000);
}
