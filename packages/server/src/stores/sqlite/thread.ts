// The thread that has the database open, so that no disk can block the main thread.
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { SqlStores } from '../contracts.ts';
import { QuotaExceededError, StoreUnavailableError } from '../errors.ts';
import { openSqliteStores, type SqliteOptions } from './database.ts';

export interface Call {
  /** From 1: answer 0 says that the database is open. */
  readonly id: number;
  readonly store: Exclude<keyof SqlStores, 'close'>;
  readonly method: string;
  readonly args: readonly unknown[];
  /** By `process.hrtime`, which all threads share: the caller does not wait any longer. */
  readonly deadline: bigint;
}

/** Every call gets one, in any order. */
export type Answer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: SentError };

/** Structured cloning keeps neither the class nor the name of an error. */
export interface SentError {
  readonly name: string;
  readonly message: string;
  /** Of a StoreUnavailableError. */
  readonly reason?: string | undefined;
  readonly cause?: unknown;
  /** Of a QuotaExceededError. */
  readonly exceeded?: Pick<QuotaExceededError, 'quota' | 'limit' | 'used'> | undefined;
}

await serve(parentPort as MessagePort, workerData);

async function serve(port: MessagePort, { dataDir, answerMs, longMs }: SqliteOptions): Promise<void> {
  async function answer<T>(id: number, work: () => Promise<T>): Promise<T | undefined> {
    try {
      const value = await work();
      port.postMessage({ id, value: id === 0 ? undefined : value } satisfies Answer);
      return value;
    } catch (error) {
      port.postMessage({ id, error: toSend(error) } satisfies Answer);
      return undefined;
    }
  }
  const stores = await answer(0, () => openSqliteStores({ dataDir, answerMs, longMs }));
  if (stores === undefined) return;
  port.on('message', (call: Call | 'close') => {
    if (call !== 'close') return void answer(call.id, () => run(stores, call));
    void stores.close();
    port.close();
  });
}

async function run(stores: SqlStores, { store, method, args, deadline }: Call): Promise<unknown> {
  // After a disk that hung: the caller has been told that this call failed, so it must not happen any more.
  if (process.hrtime.bigint() > deadline) throw new StoreUnavailableError('it answers too slowly');
  const found: unknown = Reflect.get(stores[store], method);
  if (typeof found !== 'function') throw new TypeError(`The store of ${store} has no method ${method}`);
  return found.apply(stores[store], args);
}

function toSend(error: unknown): SentError {
  const { name, message, cause } = error instanceof Error ? error : new Error(String(error));
  if (error instanceof QuotaExceededError) {
    const { quota, limit, used } = error;
    return { name, message, exceeded: { quota, limit, used } };
  }
  return { name, message, cause, reason: error instanceof StoreUnavailableError ? error.reason : undefined };
}
