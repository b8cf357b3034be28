// The thread that has the database open, so that no disk can make the main thread wait.
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { StoreUnavailableError } from '../unavailable.ts';
import { type LocalStoresOptions, openLocalStores, type Stores } from './local-stores.ts';

export interface Call {
  /** From 1 on: the answer 0 tells that the database is open. */
  readonly id: number;
  readonly store: 'requests' | 'keys' | 'webhooks';
  readonly method: string;
  readonly args: readonly unknown[];
  /** By `process.hrtime`, which all threads share: from then on nobody waits for the answer. */
  readonly deadline: bigint;
}

/** Every call gets one, in the order in which they are ready. */
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
}

await serve(parentPort as MessagePort, workerData);

async function serve(port: MessagePort, { dataDir, answerMs }: LocalStoresOptions): Promise<void> {
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
  const stores = await answer(0, () => openLocalStores({ dataDir, answerMs }));
  if (stores === undefined) return;
  port.on('message', (call: Call | 'close') => {
    if (call !== 'close') return void answer(call.id, () => run(stores, call));
    void stores.close();
    port.close();
  });
}

async function run(stores: Stores, { store, method, args, deadline }: Call): Promise<unknown> {
  // After a disk that hung: whoever made this call has been told that it failed, so it must not happen any more.
  if (process.hrtime.bigint() > deadline) throw new StoreUnavailableError('it answers too slowly');
  const methods = stores[store] as unknown as Record<string, (...args: readonly unknown[]) => unknown>;
  return methods[method]?.(...args);
}

function toSend(error: unknown): SentError {
  const { name, message, cause } = error instanceof Error ? error : new Error(String(error));
  return { name, message, cause, reason: error instanceof StoreUnavailableError ? error.reason : undefined };
}
