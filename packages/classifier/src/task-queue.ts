import { ClosedError, NoThreadsError, OverloadedError, WorkerFailedError } from './errors.ts';
import { type InferenceThread, ThreadLostError, type ThreadOptions } from './inference-thread.ts';
import { Pool } from './pool.ts';
import type { Outcome, Task } from './protocol.ts';
import { PRIORITIES, type Priority, Scheduler, type Work } from './scheduler.ts';

export interface TaskQueueOptions {
  threads: number;
  /** The most discrete tasks that wait. */
  queueLimit: number;
  thread: ThreadOptions;
}

export interface TaskOptions {
  priority: Priority;
  signal?: AbortSignal | undefined;
}

export interface Answer<T extends Task> {
  outcome: Outcome<T>;
  queueMs: number;
}

export interface QueueStats {
  /** As many as there should be. */
  threads: number;
  alive: number;
  busy: number;
  queued: Record<Priority, number>;
  /** How many threads were started in the place of lost ones. */
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
const FIRST_BACK_OFF_MS = 100;

/** Tasks in, outcomes out: the queue in front of the inference threads. */
export class TaskQueue {
  readonly #options: TaskQueueOptions;
  readonly #pool: Pool;
  readonly #scheduler: Scheduler<Job>;
  readonly #pace: Pace;
  readonly #running = new Set<Job>();
  readonly #unsettled = new Set<Promise<unknown>>();
  #startFailure: Error | undefined;
  #closed: Promise<void> | undefined;

  /** Rejects when any thread cannot be started. */
  static async start(options: TaskQueueOptions): Promise<TaskQueue> {
    const pool = await Pool.start({
      size: options.threads,
      backOffMs: FIRST_BACK_OFF_MS,
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

  /** The task's data must not be changed until the answer is there. */
  async run<T extends Task>(task: T, { priority, signal }: TaskOptions): Promise<Answer<T>> {
    if (this.#closed !== undefined) throw new ClosedError();
    signal?.throwIfAborted();
    if (this.#startFailure !== undefined && priority !== 'asynch') throw noThreads(this.#startFailure);
    const { promise, resolve, reject } = Promise.withResolvers<Answer<Task>>();
    const job: Job = {
      priority,
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
    const queued = PRIORITIES.map((priority) => [priority, this.#scheduler.waiting(priority).length]);
    return {
      threads: this.#options.threads,
      alive: threads.length,
      busy: threads.filter((thread) => thread.busy).length,
      queued: Object.fromEntries(queued),
      restarts: this.#pool.restarts,
    };
  }

  /** How long the threads take for so many discrete requests. */
  drainMs(requests: number): number {
    return (requests * this.#pace.msPerRequest) / Math.max(1, this.#pool.threads.size);
  }

  /** A discrete request is over, with or without an answer. */
  requestDone(): void {
    this.#pace.requestDone();
  }

  overloaded(): OverloadedError {
    const waiting = this.#scheduler.waiting('discrete').length;
    return new OverloadedError(Math.max(1, Math.ceil(this.drainMs(waiting) / 1_000)));
  }

  /** Takes no new work, answers everything that was accepted, then ends the threads. */
  close(): Promise<void> {
    if (this.#closed === undefined) {
      this.#closed = Promise.allSettled(this.#unsettled).then(() => this.#pool.close());
      if (this.#startFailure !== undefined) this.#refuseWaiting(this.#startFailure);
    }
    return this.#closed;
  }

  #dispatch(): void {
    for (let thread = this.#pool.idle(); thread !== undefined; thread = this.#pool.idle()) {
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
      const outcome = await thread.run(job.task);
      // Measured by the thread itself, whatever keeps this one from hearing of it.
      if ('inferenceMs' in outcome) spentMs = outcome.decodeMs + outcome.inferenceMs;
      job.resolve({ outcome, queueMs: startedAt - job.acceptedAt });
    } catch (error) {
      if (!(error instanceof ThreadLostError)) job.reject(error);
      else if (++job.attempts < ATTEMPTS) this.#requeue(job);
      else job.reject(new WorkerFailedError(`Two threads were lost over this work. ${error.message}`));
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

  /** Without a thread nobody would be answered soon: only asynch work has the time to wait for one. */
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
 * How long a thread has to do with one discrete request, measured all the time: what an honest Retry-After rests on. Requests
 * that are refused at once count too. Without them the pace would stay what it was in a bad moment.
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
    // Slow enough to forget one odd request, quick enough to follow a machine that became busy.
    this.msPerRequest += 0.1 * (this.#spentMs - this.msPerRequest);
    this.#spentMs = 0;
  }
}
