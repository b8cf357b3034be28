import type { Logger } from '../types.ts';

/** Computes an MD5 incrementally. */
export interface Md5 {
  update(bytes: Uint8Array): void;
  hex(): string;
}

export interface Terminal {
  readonly columns: number;
  write(text: string): void;
}

/** A recording of known length with random access. */
export interface AudioSource {
  /** The file name for the server, without its folder. */
  readonly name: string;
  readonly size: number;
  /**
   * The bytes from `start` up to `end`, in pieces. Sources that copy get their memory from `allocate`. Throws if the
   * recording has changed.
   */
  read(start: number, end: number, allocate?: () => Uint8Array): AsyncIterable<Uint8Array>;
  /** Throws if the recording has changed since it was opened. */
  verify(): Promise<void>;
  close(): Promise<void>;
}

/** Everything that differs between Node and browsers. */
export interface Platform {
  env(name: string): string | undefined;
  readonly logger: Logger;
  /** Sent with every call. */
  readonly headers: Readonly<Record<string, string>>;
  terminal(): Terminal | null;
  md5(): Md5;
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** Whether `fetch` can stream a request body. If not, each part is in memory while it is sent. */
  readonly streamsBodies: boolean;
  openPath(path: string | URL, signal?: AbortSignal): Promise<AudioSource>;
  /** Stores a stream of unknown length outside of memory, so that its parts can be sent and resent. */
  spool(chunks: AsyncIterable<Uint8Array>, name: string): Promise<AudioSource>;
}

/** Resolves after a delay, or rejects with the signal's reason when it is aborted. */
export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, milliseconds);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
