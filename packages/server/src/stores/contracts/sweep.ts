/** One batch of the sweep. */
export interface Expired {
  readonly more: boolean;
  readonly requests: number;
  /** Those of them that waited for a worker until the end. */
  readonly unprocessed: number;
}

/** A request whose blobs are to be erased. */
export interface ErasableBlobs {
  readonly id: string;
  /** Since when. Milliseconds since 1970. */
  readonly due: number;
}

/** An upload whose parts go straight to the blob store. */
export interface ArrivedUpload {
  readonly id: string;
  readonly owner: string;
  readonly bytes: number;
  /** Of everything the owner has stored, this upload included. */
  readonly ownerBytes: number;
  /** Of the owner; null if it has none of its own. */
  readonly storageLimit: number | null;
}

/** The part of the RequestStore that erases what is over. */
export interface SweepStore {
  /**
   * The sweep: expires requests, deletes interrupted uploads, and removes tombstones after 24 hours. One batch of each, in
   * its own transaction, so that other calls have their turn in between. A request that expires unfinished gets a webhook,
   * if one is wanted.
   */
  expire(options?: { limit?: number }): Promise<Expired>;
  /**
   * The sweep: requests whose blobs are to be erased now, oldest first. They are completed, failed, expired or deleted since they
   * were last erased, or their upload URLs have ended since.
   */
  blobsToErase(options: { limit: number; after?: ErasableBlobs | undefined }): Promise<ErasableBlobs[]>;
  /** The worker and the sweep, after erasing the blobs of these requests. */
  noteErased(ids: readonly string[]): Promise<void>;
  /** The worker and the daily search for orphans: which of these still need their blobs (uploading, queued or processing). */
  needingBlobs(ids: readonly string[]): Promise<string[]>;
  /** The sweep, where clients upload straight to the blob store: requests whose parts may be arriving now, ordered by id. */
  arrivingUploads(options: { limit: number; after: string }): Promise<string[]>;
  /**
   * The sweep, where clients upload straight to the blob store: bytes by request. They count towards the storage of the owner.
   * Returns the requests that are still uploading.
   */
  noteArrived(bytes: ReadonlyMap<string, number>): Promise<ArrivedUpload[]>;
}
