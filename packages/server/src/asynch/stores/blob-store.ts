/**
 * Where recordings lie while they wait. A blob belongs to a group (the id of its request) and is written once, under
 * a name that was never used before: replacing a part means writing another blob, so a crash cannot leave half of
 * one and half of the other.
 */
export interface BlobStore {
  /** A part that begins to arrive. */
  create(group: string, name: string): Promise<BlobWriter>;
  /** The worker. Reads on only as fast as it is read. */
  read(group: string, name: string): AsyncIterable<Uint8Array>;
  /** A part that was replaced or that nobody wants any more. Harmless when it is not there. */
  erase(group: string, name: string): Promise<void>;
  /** Delete, the worker and the sweeper. Harmless when there is nothing. */
  eraseGroup(group: string): Promise<void>;
  /** The sweeper. */
  groups(): Promise<string[]>;
  /** The sweeper. What was never finished is listed too. */
  list(group: string): Promise<BlobInfo[]>;
  /** `/readyz`. Rejects when nothing can be written. */
  checkWritable(): Promise<void>;
}

export interface BlobWriter {
  write(chunk: Uint8Array): Promise<void>;
  /** Resolves when the blob is complete, in its place, and would survive a power cut. */
  finish(): Promise<void>;
  /** Leaves nothing behind. Harmless after a failure of the others. */
  discard(): Promise<void>;
}

export interface BlobInfo {
  readonly name: string;
  readonly modifiedAt: number;
}
