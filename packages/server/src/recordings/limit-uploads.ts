import { ASYNCH_LIMITS } from '@undertone/contract';
import type { BlobStore } from '../stores/blobs.ts';
import type { RequestStore } from '../stores/contracts.ts';
import { forEachConcurrently } from './concurrently.ts';

interface LimiterOptions {
  readonly requests: RequestStore;
  readonly blobs: BlobStore;
  /** Of an owner without a limit of its own; 0 is no limit. */
  readonly storageLimit: number;
}

/** No upload begins above the limit. Those that began before may bring as much again. */
const TOLERANCE = 2;
/** Each takes a call to the blob store. If more are open, they take turns. */
const UPLOADS_PER_RUN = 500;

/**
 * Parts that clients send straight to the blob store pass no check of ours, and its URLs cannot be revoked. So every minute
 * the bytes of open uploads are counted towards the storage of their owners, and uploads that are far too large are erased.
 */
export class UploadLimiter {
  readonly #options: LimiterOptions;
  /** The next run begins after this one. Ids are random, so no upload is preferred. */
  #last = '';

  constructor(options: LimiterOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { requests, blobs } = this.#options;
    if (blobs.arrived === undefined || signal.aborted) return;
    const ids = await requests.arrivingUploads({ limit: UPLOADS_PER_RUN, after: this.#last });
    if (ids.length === 0 && this.#last === '') return;
    this.#last = ids.length < UPLOADS_PER_RUN ? '' : (ids.at(-1) ?? '');
    const bytes = new Map<string, number>();
    const failures = await forEachConcurrently(ids, async (id) => {
      const parts = (await blobs.arrived?.(id)) ?? [];
      bytes.set(
        id,
        parts.reduce((sum, part) => sum + part.bytes, 0),
      );
    });
    await this.#limit(bytes);
    if (failures.length > 0) throw new AggregateError(failures, 'Some open uploads could not be counted');
  }

  async #limit(bytes: ReadonlyMap<string, number>): Promise<void> {
    const { requests, blobs, storageLimit } = this.#options;
    const excess = new Map<string, number>();
    for (const upload of await requests.noteArrived(bytes)) {
      const { id, owner } = upload;
      const limit = upload.storageLimit ?? storageLimit;
      const over = excess.get(owner) ?? (limit === 0 ? 0 : upload.ownerBytes - TOLERANCE * limit);
      excess.set(owner, over);
      if (over <= 0 && upload.bytes <= ASYNCH_LIMITS.maxFileBytes) continue;
      await requests.delete(id, owner);
      await blobs.eraseGroup(id);
      excess.set(owner, over - upload.bytes);
    }
  }
}
