import { itemsOf, untilAborted } from './abort.ts';
import { AuthenticationError, ConfigError, ConnectionFailedError, UndertoneError } from './errors.ts';
import type { AudioInput, DiscreteResult } from './types.ts';

/** The result for one of many recordings, or the error. */
export type ManyOutcome<File = AudioInput> =
  | { file: File; result: DiscreteResult; error?: undefined }
  | { file: File; result?: undefined; error: UndertoneError };

/** One recording instead of several: a path would be taken for a list of letters, bytes for a list of numbers. */
export function checkIsList(files: unknown): void {
  const isOne =
    typeof files !== 'object' ||
    files === null ||
    ArrayBuffer.isView(files) ||
    !(Symbol.iterator in files || Symbol.asyncIterator in files);
  if (!isOne) return;
  const given = typeof files === 'string' ? ', not one string' : '';
  throw new ConfigError([
    `discrete.many takes a list of recordings${given}: pass ['a.wav', 'b.wav'], or use discrete.emotions for one recording.`,
  ]);
}

/** Processes up to `limit` items concurrently and yields each result as soon as it is ready. */
export async function* asCompleted<Item, Result>(
  items: Iterable<Item> | AsyncIterable<Item>,
  limit: number,
  signal: AbortSignal,
  work: (item: Item) => Promise<Result>,
): AsyncGenerator<Result, void, undefined> {
  type Event = { task: Promise<Event>; result: Result } | { next: IteratorResult<Item, void> };
  const source = itemsOf(items, signal);
  const running = new Set<Promise<Event>>();
  let next: Promise<Event> | undefined;
  let isExhausted = false;
  try {
    for (;;) {
      // Errors reach the caller through the race. After the caller has stopped reading, they are ignored.
      if (!isExhausted && running.size < limit) next ??= quiet(source.next().then((next) => ({ next })));
      const pending = next ? [...running, next] : [...running];
      if (pending.length === 0) return;
      const event = await untilAborted(Promise.race(pending), signal);
      if ('task' in event) {
        running.delete(event.task);
        yield event.result;
      } else {
        next = undefined;
        if (event.next.done) {
          isExhausted = true;
        } else {
          const task: Promise<Event> = quiet(work(event.next.value).then((result) => ({ task, result })));
          running.add(task);
        }
      }
    }
  } finally {
    const released = quiet(source.return());
    // While it waits for its next item, only the signal can end it.
    if (next === undefined) await released;
  }
}

/** A failed recording does not stop the others; a wrong key or an unreachable server would fail them all, and is thrown. */
export async function outcomeOf<File>(
  file: File,
  classify: () => Promise<DiscreteResult>,
): Promise<ManyOutcome<File>> {
  try {
    return { file, result: await classify() };
  } catch (error) {
    const isForAll = error instanceof AuthenticationError || error instanceof ConnectionFailedError;
    if (!(error instanceof UndertoneError) || isForAll) throw error;
    return { file, error };
  }
}

function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
