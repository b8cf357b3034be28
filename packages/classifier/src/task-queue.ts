import { ClosedError, NoThreadsError, OverloadedError, WorkerFailedError } from './errors.ts';
import { type InferenceThread, ThreadLostError, type ThreadOptions } from './inference-thread.ts';
import { Pool } from './pool.ts';
import type { Task, TaskOutput } from './protocol.ts';
import { PRIORITIES, type Priority, Scheduler, type Work } from './scheduler.ts';

export interface TaskQueueOptions {
  threads: number;
  /** Maximum number of waiting discrete tasks. */
  queueLimit: number;
  thread: ThreadOptions;
}

export interface TaskOptions {
  priority: Priority;
  /** Owners of waiting tasks take turns. */
  owner?: string | undefined;
  signal?: AbortSignal | undefined;
}

export interface Answer<T extends Task> {
  output: TaskOutput<T>;
  queueMs: number;
}

export interface QueueStats {
  /** Configured number of threads. */
  threads: number;
  alive: number;
  busy: number;
  queued: Record<Priority, number>;
  /** Number of replaced threads. */
  restarts: number;
}

interface Job extends Work {
  task: Task;
  acceptedAt: number;
  attempts: number;
  settled: boolean;
  resolve: (answer: Answer<Task>) => void;
  reject: (error: unknown) => void;
}

const RULES = { turns: 8, reserveMs: 5_000 };
const ATTEMPTS = 2;

/** The queue in front of the inference threads. Retries tasks whose thread was lost. */
export class TaskQueue {
  readonly #options: TaskQueueOptions;
  readonly #pool: Pool;
  readonly #scheduler: Scheduler<Job>;
  readonly #pace: Pace;
  readonly #running = new Set<Job>();
  readonly #unsettled = new Set<Promise<unknown>>();
  #startFailure: Error | undefined;
  #closed: Promise<void> | undefined;

  /** Rejects if any thread cannot be started. */
  static async start(options: TaskQueueOptions): Promise<TaskQueue> {
    const pool = await Pool.start({
      size: options.threads,
      thread: options.thread,
      onReady: () => queue.#onReady(),
      onStartFailed: (error) => queue.#onStartFailed(error),
    });
    const queue = new TaskQueue(options, pool);
    return queue;
  }

  private constructor(options: TaskQueueOptions, pool: Pool) {
    this.#options = options;
    this.#pool = pool;
    this.#scheduler = new Scheduler({ ...RULES, queueLimit: options.queueLimit });
    const warmUps = [...pool.threads].map((thread) => thread.warmUpMs);
    this.#pace = new Pace(warmUps.reduce((sum, ms) => sum + ms, 0) / warmUps.length);
  }

  /** The task's data must not change until this settles. */
  async run<T extends Task>(task: T, { priority, owner, signal }: TaskOptions): Promise<Answer<T>> {
    if (this.#closed !== undefined) throw new ClosedError();
    signal?.throwIfAborted();
    if (this.#startFailure !== undefined && priority !== 'asynch') throw noThreads(this.#startFailure);
    const { promise, resolve, reject } = Promise.withResolvers<Answer<Task>>();
    const job: Job = {
      priority,
      owner,
      task,
      acceptedAt: performance.now(),
      attempts: 0,
      settled: false,
      resolve,
      reject,
    };
    if (!this.#scheduler.offer(job, job.acceptedAt)) throw this.overloaded();
    const abort = () => {
      this.#scheduler.remove(job);
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', abort, { once: true });
    this.#unsettled.add(promise);
    this.#dispatch();
    try {
      return (await promise) as Answer<T>;
    } finally {
      job.settled = true;
      this.#unsettled.delete(promise);
      signal?.removeEventListener('abort', abort);
    }
  }

  stats(): QueueStats {
    const threads = [...this.#pool.threads];
    const queued = PRIORITIES.map((priority) => [priority, this.#scheduler.waiting(priority)]);
    return {
      threads: this.#options.threads,
      alive: threads.length,
      busy: threads.filter((thread) => thread.busy).length,
      queued: Object.fromEntries(queued),
      restarts: this.#pool.restarts,
    };
  }

  /** Estimated time for this many discrete requests. */
  drainMs(requests: number): number {
    return (requests * this.#pace.msPerRequest) / Math.max(1, this.#pool.threads.size);
  }

  /** Call at the end of every discrete request, successful or not. */
  requestDone(): void {
    this.#pace.requestDone();
  }

  overloaded(): OverloadedError {
    const waiting = this.#scheduler.waiting('discrete');
    return new OverloadedError(Math.max(1, Math.ceil(this.drainMs(waiting) / 1_000)));
  }

  /** Refuses new work, finishes accepted work, then ends the threads. */
  close(): Promise<void> {
    if (this.#closed === undefined) {
      this.#closed = Promise.allSettled(this.#unsettled).then(() => this.#pool.close());
      if (this.#startFailure !== undefined) this.#refuseWaiting(this.#startFailure);
    }
    return this.#closed;
  }

  #dispatch(): void {
    for (;;) {
      const thread = [...this.#pool.threads].find(({ idle }) => idle);
      if (thread === undefined) return;
      const job = this.#scheduler.next({
        now: performance.now(),
        threads: this.#pool.threads.size,
        asynchRunning: [...this.#running].filter(({ priority }) => priority === 'asynch').length,
      });
      if (job === undefined) return;
      void this.#serve(thread, job);
    }
  }

  async #serve(thread: InferenceThread, job: Job): Promise<void> {
    const startedAt = performance.now();
    this.#running.add(job);
    let spentMs: number | undefined;
    try {
      const output = await thread.run(job.task);
      // Measured by the thread, without delays of the main thread's event loop.
      if ('inferenceMs' in output) spentMs = output.decodeMs + output.inferenceMs;
      job.resolve({ output, queueMs: startedAt - job.acceptedAt });
    } catch (error) {
      if (!(error instanceof ThreadLostError)) job.reject(error);
      else if (++job.attempts < ATTEMPTS) this.#requeue(job);
      else job.reject(new WorkerFailedError(`Two threads were lost during this task. ${error.message}`));
    } finally {
      if (job.priority === 'discrete') this.#pace.spent(spentMs ?? performance.now() - startedAt);
      this.#running.delete(job);
      this.#dispatch();
    }
  }

  #requeue(job: Job): void {
    if (!job.settled) this.#scheduler.requeue(job);
  }

  #onReady(): void {
    this.#startFailure = undefined;
    this.#dispatch();
  }

  /** Without any thread, only asynch work keeps waiting for one. */
  #onStartFailed(error: Error): void {
    if (this.#pool.threads.size > 0) return;
    this.#startFailure = error;
    this.#refuseWaiting(error);
  }

  #refuseWaiting(error: Error): void {
    const priorities = PRIORITIES.filter((priority) => priority !== 'asynch' || this.#closed !== undefined);
    for (const job of this.#scheduler.drain(priorities)) job.reject(noThreads(error));
  }
}

function noThreads(cause: Error): NoThreadsError {
  return new NoThreadsError(`No inference thread can be started: ${cause.message}`, { cause });
}

/**
 * Moving average of the thread time per discrete request, the basis of Retry-After. Refused requests count too:
 * otherwise the average could not recover after a slow period in which everything is refused.
 */
class Pace {
  msPerRequest: number;
  #spentMs = 0;

  constructor(msPerRequest: number) {
    this.msPerRequest = msPerRequest;
  }

  spent(milliseconds: number): void {
    this.#spentMs += milliseconds;
  }

  requestDone(): void {
    // Smooths single outliers, but follows a machine that becomes busy.
    this.msPerRequest += 0.1 * (this.#spentMs - this.msPerRequest);
    this.#spentMs = 0;
  }
}
