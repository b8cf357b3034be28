import type { Job } from '../stores/job-queue.ts';
import type { Stores } from '../stores/stores.ts';

const LOOK_EVERY_MS = 400;

/**
 * Runs beside a job: renews its lease, writes its progress, and aborts it within half a second when its request is
 * deleted, expired or somebody else's. Returns how to end the watch.
 */
export function watch(
  job: Job,
  { requests, queue }: Pick<Stores, 'requests' | 'queue'>,
  leaseMs: number,
  progress: () => number,
  gone: AbortController,
): () => void {
  let reportedAt = performance.now();
  let looking = false;

  async function look(): Promise<void> {
    if (!(await requests.holds(job.requestId, job.lease))) {
      gone.abort();
    } else if (performance.now() - reportedAt > leaseMs / 10) {
      reportedAt = performance.now();
      if (!(await queue.renew(job, leaseMs))) gone.abort();
      await requests.report(job.requestId, job.lease, progress());
    }
  }

  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    // A store that cannot be reached is no reason to stop: if it lasts, the lease runs out and the end is refused.
    look()
      .catch(() => undefined)
      .finally(() => {
        looking = false;
      });
  }, LOOK_EVERY_MS);
  return () => clearInterval(timer);
}
