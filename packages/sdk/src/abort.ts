import { RequestTimeoutError, UndertoneError } from './errors.ts';
import type { CallOptions } from './types.ts';

/** Settles like the promise, or rejects with the signal's reason as soon as it is aborted. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/** Runs one operation with a signal that is aborted by its caller, or when its timeout is over. */
export async function withTimeout<T>(
  { signal, timeout }: CallOptions,
  run: (signal: AbortSignal | undefined) => Promise<T>,
  what = 'The call did not finish',
): Promise<T> {
  signal?.throwIfAborted();
  if (timeout === undefined) return run(signal);
  const deadline = new AbortController();
  const message = `${what} within its timeout of ${timeout} milliseconds.`;
  const timer = setTimeout(
    () => deadline.abort(new RequestTimeoutError(message, { code: 'timed_out' })),
    timeout,
  );
  try {
    return await run(signal ? AbortSignal.any([signal, deadline.signal]) : deadline.signal);
  } catch (error) {
    if (!deadline.signal.aborted || signal?.aborted || error instanceof RequestTimeoutError) throw error;
    const { requestId } = error instanceof UndertoneError ? error : {};
    throw new RequestTimeoutError(message, { code: 'timed_out', requestId, cause: error });
  } finally {
    clearTimeout(timer);
  }
}

type Items<Item> = ReadableStream<Item> | AsyncIterable<Item> | Iterable<Item | Promise<Item>>;

/** The items of a stream or an iterable. An abort releases it at once, even while it waits for its next item. */
export async function* itemsOf<Item>(
  items: Items<Item>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Item, void, undefined> {
  const { next, release } = openItems(items);
  let isDone = false;
  try {
    for (;;) {
      const item = await untilAborted(next(), signal);
      isDone = item.done === true;
      if (item.done) return;
      yield item.value;
    }
  } finally {
    const released = isDone ? undefined : release().catch(() => undefined);
    // A generator that is waiting for its next item cannot be ended before that item.
    if (!signal?.aborted) await released;
  }
}

interface OpenItems<Item> {
  next(): Promise<IteratorResult<Item | Promise<Item>>>;
  release(): Promise<unknown>;
}

function openItems<Item>(items: Items<Item>): OpenItems<Item> {
  // Not by its iterator: some browsers have none for streams, and it would wait for a pending read.
  if ('getReader' in items) {
    const reader = items.getReader();
    return { next: () => reader.read() as Promise<IteratorResult<Item>>, release: () => reader.cancel() };
  }
  const iterator = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  return {
    next: async () => iterator.next(),
    release: async () => {
      // A Node stream: its iterator would wait for a pending read.
      (items as { destroy?(): void }).destroy?.();
      await iterator.return?.();
    },
  };
}
