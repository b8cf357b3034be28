import { UndertoneError } from './errors.ts';
import type { Platform } from './platform/platform.ts';
import type { AudioInput, DiscreteResult } from './types.ts';

/** The result for one of many recordings, or the error. */
export type ManyOutcome<File = AudioInput> =
  | { file: File; result: DiscreteResult; error?: undefined }
  | { file: File; result?: undefined; error: UndertoneError };

/** Concurrent calls share their pauses: when the server asks one to wait, the others wait too. */
export class SharedPause {
  readonly #platform: Platform;
  /** Settles when all pauses are over. */
  over: Promise<unknown> = Promise.resolve();

  constructor(platform: Platform) {
    this.#platform = platform;
  }

  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    const pause = this.#platform.sleep(milliseconds, signal);
    this.over = Promise.allSettled([this.over, pause]);
    return pause;
  }
}

/** Processes up to `limit` items concurrently and yields each result as soon as it is ready. */
export async function* asCompleted<Item, Result>(
  items: Iterable<Item> | AsyncIterable<Item>,
  limit: number,
  work: (item: Item) => Promise<Result>,
): AsyncGenerator<Result, void, undefined> {
  type Done = { readonly task: Promise<Done>; readonly result: Result };
  const running = new Set<Promise<Done>>();
  const next = async () => {
    const { task, result } = await Promise.race(running);
    running.delete(task);
    return result;
  };
  for await (const item of items) {
    const task: Promise<Done> = work(item).then((result) => ({ task, result }));
    // Errors reach the caller through `next`. After the caller has stopped reading, they are ignored.
    task.catch(() => {});
    running.add(task);
    if (running.size >= limit) yield await next();
  }
  while (running.size > 0) yield await next();
}

/** A failed recording does not stop the others; a wrong key or an unreachable server would fail them all, and is thrown. */
export async function outcomeOf<File>(
  file: File,
  classify: () => Promise<DiscreteResult>,
): Promise<ManyOutcome<File>> {
  try {
    return { file, result: await classify() };
  } catch (error) {
    const isFileError =
      error instanceof UndertoneError && error.status !== 401 && error.code !== 'connection_failed';
    if (!isFileError) throw error;
    return { file, error };
  }
}
