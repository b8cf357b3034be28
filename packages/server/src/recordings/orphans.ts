import type { BlobStore } from '../stores/blobs.ts';
import type { RequestStore } from '../stores/contracts.ts';

interface OrphanOptions {
  readonly requests: RequestStore;
  readonly blobs: BlobStore;
  /** A blob without a record may still be arriving. At this age it is an orphan, left by a crash. */
  readonly orphanAfterMs: number;
  readonly now: () => number;
  readonly signal: AbortSignal;
  /** Before each page but the first. */
  readonly pause: () => Promise<unknown>;
}

/**
 * Searches all blobs for what no request needs: the sweep knows only the requests that have a row. A part without a record, left
 * by a crash, is an orphan too. Blobs are written after the row of their request, so what has no row belongs to nothing.
 */
export async function eraseOrphans(options: OrphanOptions): Promise<{ groups: number; erased: number }> {
  const { requests, blobs, signal, pause } = options;
  const failures: unknown[] = [];
  let groups = 0;
  let erased = 0;
  for await (const page of blobs.groupPages()) {
    if (groups > 0) await pause();
    if (signal.aborted) break;
    groups += page.length;
    const needed = new Set(await requests.needingBlobs(page));
    for (const group of page) {
      const work = needed.has(group) ? eraseUnrecorded(group, options) : eraseGroup(group, options);
      await work.then(
        (count) => {
          erased += count;
        },
        (error: unknown) => failures.push(error),
      );
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, 'Some orphaned recordings could not be erased');
  return { groups, erased };
}

async function eraseGroup(group: string, { requests, blobs }: OrphanOptions): Promise<number> {
  await blobs.eraseGroup(group);
  await requests.noteErased([group]);
  return 1;
}

async function eraseUnrecorded(
  group: string,
  { requests, blobs, orphanAfterMs, now }: OrphanOptions,
): Promise<number> {
  // Parts that clients send straight to the blob store are not recorded before the upload is complete.
  if (blobs.arrived !== undefined) return 0;
  const old = (await blobs.list(group)).filter(({ modifiedAt }) => modifiedAt < now() - orphanAfterMs);
  if (old.length === 0) return 0;
  const recorded = new Set((await requests.parts(group)).map(({ blob }) => blob));
  const orphans = old.filter(({ name }) => !recorded.has(name));
  for (const { name } of orphans) await blobs.erase(group, name);
  return orphans.length;
}
