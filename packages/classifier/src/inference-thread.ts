import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { AudioError } from '@undertone/audio';
import type { ModelEntry } from './catalog.ts';
import {
  Activity,
  type FromThread,
  type Task,
  type TaskOutput,
  type ThreadData,
  type ToThread,
} from './protocol.ts';

export interface ThreadOptions {
  modelPath: string;
  models: readonly ModelEntry[];
}

/** A thread that needs longer for one task counts as lost. */
const STUCK_AFTER_MS = 30_000;

/** The thread ended or got stuck during a task. Another thread may retry it. */
export class ThreadLostError extends Error {
  override readonly name = 'ThreadLostError';
}

/** Activities of all running threads. At process exit the ONNX runtime gets time to return, see `Activity`. */
const activities = new Set<Int32Array<SharedArrayBuffer>>();
process.on('exit', () => {
  for (const activity of activities) Atomics.wait(activity, 0, Activity.Busy, 5_000);
});

interface InFlight {
  id: number;
  promise: Promise<TaskOutput>;
  resolve: (output: TaskOutput) => void;
  reject: (error: Error) => void;
  timer: NodeJS.Timeout;
}

/** The main thread's handle of one inference thread, which runs one task at a time. */
export class InferenceThread {
  /** Resolves when the thread is no longer usable, for any reason including `stop()`. */
  readonly ended: Promise<void>;
  /** Inference time of a typical clip, measured at start. */
  readonly warmUpMs: number;
  readonly #worker: Worker;
  readonly #activity: Int32Array<SharedArrayBuffer>;
  readonly #markEnded: () => void;
  #inFlight: InFlight | undefined;
  #usable = true;
  #hasServed = false;
  #id = 0;

  /** Rejects with the thread's message if the model cannot be loaded. */
  static async start({ modelPath, models }: ThreadOptions): Promise<InferenceThread> {
    const activity = new Int32Array(new SharedArrayBuffer(4));
    activity[0] = Activity.Busy;
    const workerData: ThreadData = { modelPath, models, activity: activity.buffer };
    // .ts in a clone, .js in the published package.
    const worker = new Worker(new URL(`./thread${extname(import.meta.url)}`, import.meta.url), {
      name: 'undertone-inference',
      workerData,
      // Do not inherit options meant for the main script (--input-type, --inspect).
      execArgv: [],
    });
    activities.add(activity);
    worker.once('exit', () => activities.delete(activity));
    const first = await firstMessage(worker);
    if (first.kind !== 'ready') {
      throw new Error(first.kind === 'unusable' ? first.message : 'the thread sent an unexpected message');
    }
    return new InferenceThread(worker, activity, first.warmUpMs);
  }

  private constructor(worker: Worker, activity: Int32Array<SharedArrayBuffer>, warmUpMs: number) {
    this.#worker = worker;
    this.#activity = activity;
    this.warmUpMs = warmUpMs;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.#markEnded = resolve;
    worker.on('message', (message: FromThread) => this.#receive(message));
    worker.on('error', (error) => this.#lose(error.message));
    worker.on('exit', (code) => this.#lose(`it ended with code ${code}`));
  }

  get idle(): boolean {
    return this.#usable && this.#inFlight === undefined;
  }

  get busy(): boolean {
    return this.#inFlight !== undefined;
  }

  /** True after the first response. */
  get hasServed(): boolean {
    return this.#hasServed;
  }

  /**
   * Rejects with AudioError if the recording cannot be used and with ThreadLostError if the thread is lost. Transfers a
   * copy of the data: the original stays here, so that another thread can retry the task.
   */
  run(task: Task): Promise<TaskOutput> {
    if (!this.idle) return Promise.reject(new ThreadLostError('The inference thread is busy'));
    const id = ++this.#id;
    const { promise, resolve, reject } = Promise.withResolvers<TaskOutput>();
    const timer = setTimeout(() => this.#loseIfStuck(), STUCK_AFTER_MS);
    this.#inFlight = { id, promise, resolve, reject, timer };
    this.#activity[0] = Activity.Busy;
    const data = copyOf(task.data);
    this.#send({ kind: 'run', id, task: { ...task, data } as Task }, [data.buffer]);
    return promise;
  }

  /** Lets the thread finish its task, then ends it. */
  async stop(): Promise<void> {
    await this.#inFlight?.promise.catch(() => undefined);
    if (this.#usable) this.#send({ kind: 'stop' });
    await this.ended;
  }

  #send(message: ToThread, transfer: ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, transfer);
  }

  #receive(message: FromThread): void {
    const inFlight = this.#inFlight;
    if (inFlight === undefined || !('id' in message) || message.id !== inFlight.id) return;
    this.#inFlight = undefined;
    this.#hasServed = true;
    clearTimeout(inFlight.timer);
    if (message.kind === 'done') inFlight.resolve(message.output);
    else if (message.kind === 'failed')
      inFlight.reject(new Error(`The model could not be run: ${message.message}`));
    else inFlight.reject(new AudioError(message.code, message.message, message.figures));
  }

  #loseIfStuck(): void {
    // After a pause of the whole process the timer fires before the answer arrives: the thread is idle, not stuck.
    if (Atomics.load(this.#activity, 0) === Activity.Idle) return;
    // Terminating a thread inside the runtime would abort the process. So it is abandoned: it stops if it ever returns,
    // and no longer keeps the process alive.
    this.#send({ kind: 'stop' });
    this.#worker.unref();
    this.#lose(`it gave no answer for ${STUCK_AFTER_MS} ms`);
  }

  #lose(why: string): void {
    this.#usable = false;
    const inFlight = this.#inFlight;
    this.#inFlight = undefined;
    if (inFlight !== undefined) {
      clearTimeout(inFlight.timer);
      inFlight.reject(new ThreadLostError(`The inference thread was lost: ${why}`));
    }
    this.#markEnded();
  }
}

/** Not `slice`: a Buffer's does not copy. */
function copyOf(data: Uint8Array | Float32Array): Uint8Array<ArrayBuffer> | Float32Array<ArrayBuffer> {
  return data instanceof Float32Array ? new Float32Array(data) : new Uint8Array(data);
}

function firstMessage(worker: Worker): Promise<FromThread> {
  const { promise, resolve, reject } = Promise.withResolvers<FromThread>();
  const ended = (code: number) => reject(new Error(`the thread ended with code ${code} while starting`));
  worker.once('message', resolve).once('error', reject).once('exit', ended);
  return promise.finally(() => {
    worker.off('message', resolve).off('error', reject).off('exit', ended);
  });
}
