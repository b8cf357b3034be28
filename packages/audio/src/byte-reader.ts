/** A recording with random access, readable any number of times. */
export interface RecordingSource {
  /** In bytes. */
  readonly size: number;
  /** The bytes from `start` to `end` (exclusive); the whole recording by default. */
  read(start?: number, end?: number): AsyncIterable<Uint8Array>;
}

export function memorySource(bytes: Uint8Array): RecordingSource {
  return {
    size: bytes.length,
    async *read(start = 0, end = bytes.length) {
      yield bytes.subarray(start, end);
    },
  };
}

const NOTHING = new Uint8Array(0);

/** Reads a byte stream in pieces of the caller's size, however it arrives. Buffers only the latest piece. */
export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #signal: AbortSignal | undefined;
  #held: Uint8Array = NOTHING;
  #ended = false;
  /** Rejects the pending wait for the next piece. */
  #rejectWait: ((reason: unknown) => void) | undefined;
  readonly #onAbort = (): void => this.#rejectWait?.(this.#signal?.reason);

  constructor(source: AsyncIterable<Uint8Array>, signal?: AbortSignal) {
    this.#source = source[Symbol.asyncIterator]();
    this.#signal = signal;
    signal?.addEventListener('abort', this.#onAbort);
  }

  /** The next `count` bytes without consuming them, or fewer at the end. For small counts only. */
  async peek(count: number): Promise<Uint8Array> {
    while (this.#held.length < count) {
      const more = await this.#pull();
      if (more === null) break;
      this.#held = this.#held.length === 0 ? more : Buffer.concat([this.#held, more]);
    }
    return this.#held.subarray(0, count);
  }

  /** At least one and at most `max` bytes, without copying; null at the end. */
  async readSome(max: number): Promise<Uint8Array | null> {
    if (this.#held.length === 0) this.#held = (await this.#pull()) ?? NOTHING;
    if (this.#held.length === 0) return null;
    const bytes = this.#held.subarray(0, max);
    this.#held = this.#held.subarray(bytes.length);
    return bytes;
  }

  /** Drops the next `count` bytes. A false count in a header costs no memory. */
  async skip(count: number): Promise<void> {
    let left = count;
    while (left > 0) {
      const bytes = await this.readSome(left);
      if (bytes === null) return;
      left -= bytes.length;
    }
  }

  /** The rest of the stream. */
  async *rest(): AsyncGenerator<Uint8Array> {
    try {
      for (let bytes = await this.readSome(Infinity); bytes !== null; bytes = await this.readSome(Infinity)) {
        yield bytes;
      }
    } finally {
      this.close();
    }
  }

  /** Closes the source without waiting for it: it may hang. */
  close(): void {
    this.#held = NOTHING;
    if (this.#ended) return;
    this.#end();
    this.#source.return?.()?.catch(() => undefined);
  }

  /** The next non-empty piece, or null at the end. */
  async #pull(): Promise<Uint8Array | null> {
    while (!this.#ended) {
      const next = await this.#next();
      if (next.done) this.#end();
      else if (next.value.length > 0) return next.value;
    }
    return null;
  }

  /** An abort ends the wait even if the source never answers. */
  #next(): Promise<IteratorResult<Uint8Array>> {
    this.#signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      this.#rejectWait = reject;
      this.#source.next().then(resolve, reject);
    });
  }

  #end(): void {
    this.#ended = true;
    this.#signal?.removeEventListener('abort', this.#onAbort);
  }
}
