export type ByteSource = AsyncIterable<Uint8Array>;

const NOTHING = new Uint8Array(0);
const LONGEST_REWIND = 1024 * 1024;

/**
 * Reads a byte stream in pieces of one's own choosing, whatever the pieces it arrives in. Holds the
 * piece that came last and, until `forget`, the beginning of the stream so that it can be read again.
 */
export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #signal: AbortSignal | undefined;
  #held: Uint8Array = NOTHING;
  #beginning: Uint8Array[] | null = [];
  #beginningBytes = 0;
  #ended = false;
  /** Breaks off the wait for the next piece, where there is one. */
  #breakOff: ((reason: unknown) => void) | undefined;
  readonly #onAbort = (): void => this.#breakOff?.(this.#signal?.reason);

  constructor(source: ByteSource, signal?: AbortSignal) {
    this.#source = source[Symbol.asyncIterator]();
    this.#signal = signal;
    signal?.addEventListener('abort', this.#onAbort);
  }

  /** The next `count` bytes without moving on, or fewer where the stream ends. */
  async peek(count: number): Promise<Uint8Array> {
    while (this.#held.length < count) {
      const more = await this.#pull();
      if (more === null) break;
      this.#held = this.#held.length === 0 ? more : Buffer.concat([this.#held, more]);
    }
    return this.#held.subarray(0, count);
  }

  /** The next `count` bytes, or fewer where the stream ends. For small counts only. */
  async read(count: number): Promise<Uint8Array> {
    const bytes = await this.peek(count);
    this.#held = this.#held.subarray(bytes.length);
    return bytes;
  }

  /** At least one and at most `most` bytes, as they lie in memory; null at the end. */
  async readSome(most: number): Promise<Uint8Array | null> {
    if (this.#held.length === 0) this.#held = (await this.#pull()) ?? NOTHING;
    if (this.#held.length === 0) return null;
    const bytes = this.#held.subarray(0, most);
    this.#held = this.#held.subarray(bytes.length);
    return bytes;
  }

  /** Moves on without keeping anything; a claimed count costs nothing but the bytes that exist. */
  async skip(count: number): Promise<void> {
    let left = count;
    while (left > 0) {
      const bytes = await this.readSome(left);
      if (bytes === null) return;
      left -= bytes.length;
    }
  }

  /** Back to the first byte. False when that is too far back. */
  rewind(): boolean {
    if (this.#beginning === null) return false;
    this.#held =
      this.#beginning.length === 1 ? (this.#beginning[0] ?? NOTHING) : Buffer.concat(this.#beginning);
    return true;
  }

  forget(): void {
    this.#beginning = null;
  }

  /** What is left of the stream, as a stream. */
  async *rest(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const bytes = await this.readSome(Infinity);
        if (bytes === null) return;
        yield bytes;
      }
    } finally {
      this.close();
    }
  }

  /** Lets go of the source; does not wait for one that hangs. */
  close(): void {
    this.#held = NOTHING;
    this.#beginning = null;
    if (this.#ended) return;
    this.#end();
    this.#source.return?.()?.catch(() => undefined);
  }

  /** The next piece that is not empty, or null at the end. */
  async #pull(): Promise<Uint8Array | null> {
    while (!this.#ended) {
      const next = await this.#next();
      if (next.done) {
        this.#end();
      } else if (next.value.length > 0) {
        this.#remember(next.value);
        return next.value;
      }
    }
    return null;
  }

  #remember(bytes: Uint8Array): void {
    if (this.#beginning === null) return;
    this.#beginning.push(bytes);
    this.#beginningBytes += bytes.length;
    // A single piece is in memory anyway, however long it is.
    if (this.#beginningBytes > LONGEST_REWIND && this.#beginning.length > 1) this.#beginning = null;
  }

  /** An abort breaks this off even where the source never answers. */
  #next(): Promise<IteratorResult<Uint8Array>> {
    this.#signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      this.#breakOff = reject;
      this.#source.next().then(resolve, reject);
    });
  }

  #end(): void {
    this.#ended = true;
    this.#signal?.removeEventListener('abort', this.#onAbort);
  }
}
