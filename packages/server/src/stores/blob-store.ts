/**
 * Where recordings lie while they wait. A blob belongs to a group (the id of its request) and is written once, under a
 * name that was never used before: replacing a part means writing another blob, so a crash cannot leave half of one and
 * half of the other.
 */
export interface BlobStore {
  /** Where senders put parts, when that is not this server: web pages must be allowed to. */
  readonly uploadOrigin?: string;
  /** Initiate: where the sender puts each part. */
  uploadUrls(request: UploadTarget, partNumbers: readonly number[]): Promise<PartUrl[]>;
  /** Complete. Only where senders put parts straight into this store: what is there now. */
  arrived?(group: string): Promise<ArrivedPart[]>;
  /**
   * A part that arrives. Resolves when it is complete, in its place, and would survive a power cut; leaves nothing behind
   * when the bytes break off or the signal is aborted. `length` is what the sender announced, where it did.
   */
  write(
    group: string,
    name: string,
    bytes: AsyncIterable<Uint8Array>,
    options?: WriteOptions,
  ): Promise<WrittenBlob>;
  /** The worker. Reads on only as fast as it is read. */
  read(group: string, name: string, options?: ReadOptions): AsyncIterable<Uint8Array>;
  /** A part that was replaced or that nobody wants any more. Harmless when it is not there. */
  erase(group: string, name: string): Promise<void>;
  /** Delete, the worker and the sweep. Harmless when there is nothing. */
  eraseGroup(group: string): Promise<void>;
  /** The sweep. */
  groups(): Promise<string[]>;
  /** The sweep. Whatever takes room, also what was never finished. */
  list(group: string): Promise<BlobInfo[]>;
  /** `/readyz`. Rejects when nothing can be written. */
  checkWritable(): Promise<void>;
}

export interface UploadTarget {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
  /** What this server is reached under, such as `http://127.0.0.1:8080`. */
  readonly baseUrl: string;
}

export interface PartUrl {
  readonly part_number: number;
  readonly url: string;
  /** ISO 8601, where that is before the end of the request. */
  readonly expires_at?: string;
}

export interface ArrivedPart {
  readonly number: number;
  /** Its name here. */
  readonly blob: string;
  readonly etag: string;
  readonly bytes: number;
}

export interface ReadOptions {
  /** A stretch of it; `end` is exclusive. */
  readonly start?: number | undefined;
  readonly end?: number | undefined;
  /** Rejects when this is not the blob that is there, where a blob can be replaced behind our back. */
  readonly etag?: string | undefined;
}

export interface WriteOptions {
  readonly length?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface WrittenBlob {
  readonly bytes: number;
  /** MD5 in hexadecimal where we compute it; anything at all where another server does. */
  readonly etag: string;
}

export interface BlobInfo {
  readonly name: string;
  readonly modifiedAt: number;
}
