import type { BlobStore } from './blob-store.ts';
import type { JobQueue } from './job-queue.ts';
import type { RequestStore } from './request-store.ts';

/** The three contracts an installation of the asynch interface stands on. */
export interface Stores {
  readonly requests: RequestStore;
  readonly blobs: BlobStore;
  readonly queue: JobQueue;
}
