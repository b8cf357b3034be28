import type { BlobStore } from '../stores/blobs.ts';
import type { RequestStore } from '../stores/contracts.ts';

interface UnreadableOptions {
  readonly requests: RequestStore;
  readonly blobs: BlobStore;
  /** True if the store of the recordings was found to work since then, by `performance.now`. */
  readonly couldStoreRecordings: (since: number) => Promise<boolean>;
  /** Reading a long recording is given up then. */
  readonly signal: AbortSignal;
}

const MAX_REMEMBERED = 1_000;

/** Tells a recording that cannot be read from a store that is unavailable: only the first is the recording's own fault. */
export class UnreadableRecordings {
  readonly #options: UnreadableOptions;
  /** When recordings could first not be read, by request id, while nothing was known about their store since. */
  readonly #since = new Map<string, number>();

  constructor(options: UnreadableOptions) {
    this.#options = options;
  }

  /** It could be read. */
  forget(requestId: string): void {
    this.#since.delete(requestId);
  }

  /**
   * True if this recording still cannot be read, although its store works. The store is checked rarely, so the answer may be
   * false until the recording was tried again.
   */
  async isUnreadable(requestId: string): Promise<boolean> {
    const since = this.#since.get(requestId) ?? performance.now();
    this.#since.delete(requestId);
    if (await this.#canRead(requestId)) return false;
    if (await this.#options.couldStoreRecordings(since)) return true;
    this.#since.set(requestId, since);
    const [oldest = ''] = this.#since.keys();
    if (this.#since.size > MAX_REMEMBERED) this.#since.delete(oldest);
    return false;
  }

  async #canRead(requestId: string): Promise<boolean> {
    const { requests, blobs, signal } = this.#options;
    const parts = await requests.parts(requestId).catch(() => []);
    try {
      for (const { blob, bytes, etag } of parts) {
        for await (const _ of blobs.read(requestId, blob, { start: 0, end: bytes, etag })) {
          if (signal.aborted) return true;
        }
      }
      return true;
    } catch {
      return false;
    }
  }
}
