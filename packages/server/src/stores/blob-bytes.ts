import type { WriteOptions } from './blob-store.ts';

/** Groups are ids of requests and names are our own; anything else is not worth a look at the disk. */
const SAFE_NAME = /^[\w-][\w.-]*$/;

export function isSafeName(name: string): boolean {
  return SAFE_NAME.test(name);
}

export function requireSafeNames(...names: string[]): void {
  if (!names.every(isSafeName)) throw new RangeError('A blob may not have this name');
}

/** The bytes of a blob on their way in: ends with an error when the signal is aborted or the length is another. */
export async function* incoming(
  bytes: AsyncIterable<Uint8Array>,
  { length, signal }: WriteOptions,
): AsyncGenerator<Uint8Array> {
  let count = 0;
  const source = bytes[Symbol.asyncIterator]();
  let ended = false;
  try {
    for (;;) {
      const { done, value: chunk } = await orAborted(source.next(), signal);
      if (done) break;
      count += chunk.length;
      yield chunk;
    }
    ended = true;
  } finally {
    // Not awaited: a source that hangs would keep us from clearing up.
    if (!ended) source.return?.().catch(() => undefined);
  }
  if (length !== undefined && count !== length)
    throw new Error(`${length} bytes were announced, ${count} came`);
}

/** The promise, or the reason of the signal, whichever comes first. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort);
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
