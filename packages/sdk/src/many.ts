import { UndertoneError } from './errors.ts';
import type { Platform } from './platform/platform.ts';
import type { AudioInput, DiscreteResult } from './types.ts';

/** The result for one of many recordings, or the error. */
export type ManyOutcome<File = AudioInput> =
  | { file: File; result: DiscreteResult; error?: undefined }
  | { file: File; result?: undefined; error: UndertoneError };

/** A pause for all: what one of many calls was asked to wait, the others wait as well before they are made. */
export class SharedPause {
  readonly #platform: Platform;
  /** Settled when nobody has to wait any more. */
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

/** Works on up to `limit` items at once, and yields what comes of them as soon as it is there. */
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
    // Whoever waits for it is told; when nobody does any more, nobody needs to be.
    task.catch(() => {});
    running.add(task);
    if (running.size >= limit) yield await next();
  }
  while (running.size > 0) yield await next();
}

/** One recording that fails is no reason to stop; a wrong key or a missing server would fail all of them. */
export async function outcomeOf<File>(
  file: File,
  classify: () => Promise<DiscreteResult>,
): Promise<ManyOutcome<File>> {
  try {
    return { file, result: await classify() };
  } catch (error) {
    const isOfFile =
      error instanceof UndertoneError && error.status !== 401 && error.code !== 'connection_failed';
    if (!isOfFile) throw error;
    return { file, error };
  }
}
