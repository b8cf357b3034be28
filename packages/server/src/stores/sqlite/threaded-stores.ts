import { once } from 'node:events';
import { extname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { budgetOf, kindOf } from '../budgets.ts';
import type { Claim, SqlStores } from '../contracts.ts';
import { QuotaExceededError, StoreUnavailableError } from '../errors.ts';
import type { SqliteOptions } from './database.ts';
import type { Answer, Call, SentError } from './thread.ts';

const FIRST_RESTART_MS = 50;
const LONGEST_RESTART_MS = 5_000;
const CLOSE_MS = 2_000;

type ThreadData = Pick<SqliteOptions, 'dataDir' | 'answerMs' | 'longMs'>;

export interface ThreadedStoresOptions extends ThreadData {
  /** For the log: why the thread stopped or could not restart. It is restarted. */
  readonly onThreadError?: (error: Error) => void;
  /** Tests start a thread that they control. */
  readonly startThread?: (workerData: ThreadData) => Worker;
}

interface Pending {
  /** A claim of a request: if its answer comes too late, the request is requeued. */
  readonly claims: boolean;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  timer?: NodeJS.Timeout;
  timedOut?: boolean;
}

/** SQLite on a thread of its own. Rejects when the database cannot be opened. */
export async function openThreadedStores(options: ThreadedStoresOptions): Promise<SqlStores> {
  const thread = new StoreThread(options);
  await thread.start();
  return {
    requests: thread.store('requests'),
    keys: thread.store('keys'),
    webhooks: thread.store('webhooks'),
    ledger: thread.store('ledger'),
    close: () => thread.close(),
  };
}

class StoreThread {
  readonly #options: ThreadedStoresOptions;
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | undefined;
  #lastId = 0;
  #closed = false;

  constructor(options: ThreadedStoresOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { dataDir, answerMs, longMs, startThread = startStoreThread } = this.#options;
    const worker = startThread({ dataDir, answerMs, longMs });
    this.#worker = worker;
    let started = false;
    let why = new Error('The store thread has stopped.');
    worker.on('message', (answer: Answer) => this.#settle(answer));
    worker.on('error', (error: Error) => {
      why = error;
    });
    worker.on('exit', () => {
      this.#worker = undefined;
      const unanswered = [...this.#pending.values()];
      this.#pending.clear();
      for (const { reject } of unanswered) {
        reject(new StoreUnavailableError('its database was closed', { cause: why }));
      }
      if (started && !this.#closed) void this.#restart(why);
    });
    try {
      await new Promise((resolve, reject) => this.#pending.set(0, { claims: false, resolve, reject }));
      started = true;
    } catch (error) {
      // The next thread may start only after this one has exited.
      await worker.terminate();
      throw error;
    }
  }

  async #restart(why: Error): Promise<void> {
    let error = why;
    for (let pause = FIRST_RESTART_MS; ; pause = Math.min(2 * pause, LONGEST_RESTART_MS)) {
      this.#options.onThreadError?.(error);
      await sleep(pause, undefined, { ref: false });
      if (this.#closed) return;
      try {
        return await this.start();
      } catch (again) {
        error = again as Error;
      }
    }
  }

  store<T extends object>(name: Call['store']): T {
    return new Proxy({} as T, {
      // Not `then`: awaiting the store would call it.
      get: (own, method) =>
        typeof method !== 'string' || method === 'then' || method in own
          ? Reflect.get(own, method)
          : (...args: unknown[]) => this.#call(name, method, args),
    });
  }

  #call(store: Call['store'], method: string, args: readonly unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#worker === undefined) throw new StoreUnavailableError('its database is being reopened');
      const id = ++this.#lastId;
      const budgetMs = budgetOf(kindOf(store, method), this.#options);
      const deadline = process.hrtime.bigint() + BigInt(budgetMs) * 1_000_000n;
      this.#worker.postMessage({ id, store, method, args, deadline } satisfies Call);
      const claims = store === 'requests' && method === 'claim';
      const pending: Pending = { claims, resolve, reject };
      this.#pending.set(id, pending);
      const timeOut = () => {
        pending.timedOut = true;
        reject(new StoreUnavailableError('its disk answers too slowly'));
      };
      // One turn of the event loop later: the answer may have arrived while this thread was busy.
      pending.timer = setTimeout(() => setImmediate(timeOut), budgetMs);
    });
  }

  #settle(answer: Answer): void {
    const pending = this.#pending.get(answer.id);
    if (pending === undefined) return;
    this.#pending.delete(answer.id);
    clearTimeout(pending.timer);
    if ('error' in answer) {
      pending.reject(asError(answer.error));
      return;
    }
    pending.resolve(answer.value);
    const late = pending.timedOut && pending.claims ? (answer.value as Claim | null) : null;
    // No worker knows of this lease. If it expired, that would count as a failed attempt.
    const args = late ? [late.request.id, late.lease, { countAttempt: false }] : [];
    if (late) this.#call('requests', 'requeue', args).catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const worker = this.#worker;
    if (worker === undefined) return;
    worker.postMessage('close');
    // A thread whose disk hangs never exits.
    await Promise.race([once(worker, 'exit'), sleep(CLOSE_MS, undefined, { ref: false })]);
    void worker.terminate();
  }
}

function startStoreThread(workerData: ThreadData): Worker {
  // .ts in a clone, .js in the published package. Without the options of the main script (--input-type, --inspect).
  return new Worker(new URL(`./thread${extname(import.meta.url)}`, import.meta.url), {
    name: 'undertone-store',
    workerData,
    execArgv: [],
  });
}

function asError({ name, message, reason, cause, exceeded }: SentError): Error {
  if (exceeded !== undefined) return new QuotaExceededError(exceeded);
  if (reason !== undefined) return new StoreUnavailableError(reason, { cause });
  return Object.assign(new Error(message, { cause }), { name });
}
