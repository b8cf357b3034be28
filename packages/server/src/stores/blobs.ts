/** Upload URLs that a blob store itself checks are valid this long at most: they cannot be revoked. */
export const UPLOAD_URL_MS = 60 * 60_000;
/** A part may arrive this long after its URL was given out: it may begin at the last moment, and then takes its time. */
export const LATE_UPLOAD_MS = UPLOAD_URL_MS + 15 * 60_000;

/**
 * Recordings that wait for a worker. A blob belongs to a group (its request id) and is written once, under a new name:
 * replacing a part means writing another blob, so a crash cannot mix the two.
 */
export interface BlobStore {
  /** The origin clients upload to, when that is not this server: web pages need permission to connect to it. */
  readonly uploadOrigin?: string;
  /** Bytes that `write` keeps in memory at most; none by default. */
  readonly bufferBytes?: number;
  /** Initiate and resume: where the client uploads each part. */
  uploadUrls(request: UploadTarget, partNumbers: readonly number[]): Promise<PartUrl[]>;
  /** Complete, resume and the sweep, where clients upload straight to this store: the parts that are there now. */
  arrived?(group: string): Promise<ArrivedPart[]>;
  /**
   * A part that arrives. Resolves when the blob is complete and survives a power cut; leaves nothing behind when the source
   * fails, the signal aborts, or `length` is wrong.
   */
  write(
    group: string,
    name: string,
    bytes: AsyncIterable<Uint8Array>,
    options?: WriteOptions,
  ): Promise<WrittenBlob>;
  /** The worker. Applies backpressure. */
  read(group: string, name: string, options?: ReadOptions): AsyncIterable<Uint8Array>;
  /** A part that was replaced or refused. No error when it does not exist. */
  erase(group: string, name: string): Promise<void>;
  /** Delete, the worker and the sweep. No error when it does not exist. */
  eraseGroup(group: string): Promise<void>;
  /** A restore. */
  groups(): Promise<string[]>;
  /** The daily search for orphans: all groups, page by page. A group may be on several pages. */
  groupPages(): AsyncIterable<readonly string[]>;
  /** The daily search for orphans. Everything that uses space, unfinished blobs included. */
  list(group: string): Promise<BlobInfo[]>;
  /** `/readyz`. Rejects when nothing can be written. */
  checkWritable(): Promise<void>;
}

export interface UploadTarget {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
  /** Public address of this server, such as `http://127.0.0.1:8080`. */
  readonly baseUrl: string;
}

export interface PartUrl {
  readonly part_number: number;
  readonly url: string;
  /** ISO 8601, if the URL expires before the request. */
  readonly expires_at?: string;
}

export interface ArrivedPart {
  readonly number: number;
  /** Its name in this store. */
  readonly blob: string;
  readonly etag: string;
  readonly bytes: number;
}

export interface ReadOptions {
  /** A range of bytes; `end` is exclusive. */
  readonly start?: number | undefined;
  readonly end?: number | undefined;
  /** Where clients can overwrite a blob: rejects when the blob has another ETag. */
  readonly etag?: string | undefined;
}

export interface WriteOptions {
  readonly length?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface WrittenBlob {
  readonly bytes: number;
  /** MD5 in hexadecimal from the file store; opaque from S3. */
  readonly etag: string;
}

export interface BlobInfo {
  readonly name: string;
  readonly modifiedAt: number;
}

/** Groups are request ids and names are our own: anything else never reaches the disk. */
const SAFE_NAME = /^[\w-][\w.-]*$/;

export function isSafeName(name: string): boolean {
  return SAFE_NAME.test(name);
}

export function requireSafeNames(...names: string[]): void {
  if (!names.every(isSafeName)) throw new RangeError('Invalid blob name');
}

/** The bytes of a blob to write. Throws when the signal aborts or the length is wrong. */
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
    // Not awaited: a source that hangs would keep us from cleaning up.
    if (!ended) source.return?.().catch(() => undefined);
  }
  if (length !== undefined && count !== length) {
    throw new Error(`${length} bytes were announced, ${count} arrived`);
  }
}

/** Rejects with the signal's reason if it aborts first. */
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
