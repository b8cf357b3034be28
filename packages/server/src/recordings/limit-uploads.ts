import { ASYNCH_LIMITS } from '@undertone/contract';
import type { BlobStore } from '../stores/blobs.ts';
import type { RequestStore } from '../stores/contracts.ts';

interface LimitOptions {
  readonly requests: RequestStore;
  readonly blobs: BlobStore;
  /** Of an owner without a limit of its own; 0 is no limit. */
  readonly storageLimit: number;
}

/** No upload begins above the limit. Those that began before may bring as much again. */
const TOLERANCE = 2;

/**
 * Parts that clients send straight to the blob store pass no check of ours, and its URLs cannot be revoked. So every minute
 * their bytes are counted towards the storage of their owners, and uploads that are far too large are erased.
 */
export async function limitUploads(
  bytes: ReadonlyMap<string, number>,
  { requests, blobs, storageLimit }: LimitOptions,
): Promise<void> {
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
