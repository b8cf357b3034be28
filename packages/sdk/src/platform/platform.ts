/** Computes an MD5 on the way. */
export interface Md5 {
  update(bytes: Uint8Array): void;
  hex(): string;
}

/** A terminal a bar can be drawn on. */
export interface Terminal {
  readonly columns: number;
  write(text: string): void;
}

/** A recording of known length whose bytes can be read in any order and more than once. */
export interface AudioSource {
  /** What the service is told the file is called: never more than the last part of a path. */
  readonly name: string;
  readonly size: number;
  /**
   * The bytes from `start` up to `end`, in pieces; sources that need memory for a piece ask `allocate` for it.
   * Throws when the recording is no longer what it was.
   */
  read(start: number, end: number, allocate?: () => Uint8Array): AsyncIterable<Uint8Array>;
  /** Throws when the recording has changed since it was opened. */
  verify(): Promise<void>;
  close(): Promise<void>;
}

/** All that differs from one place to run to another. */
export interface Platform {
  env(name: string): string | undefined;
  log(level: 'debug' | 'info' | 'warn' | 'error', line: string): void;
  terminal(): Terminal | null;
  md5(): Md5;
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** Whether `fetch` sends a stream as it is read; where not, a part is in memory while it is sent. */
  readonly streamsBodies: boolean;
  openPath(path: string | URL): Promise<AudioSource>;
  /** Keeps a stream of unknown length outside of memory, so that its parts can be sent, and sent again. */
  spool(chunks: AsyncIterable<Uint8Array>, name: string): Promise<AudioSource>;
}

/** Resolves after a while, or rejects with the signal's reason as soon as it is aborted. */
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
