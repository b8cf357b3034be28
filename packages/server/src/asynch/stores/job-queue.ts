/**
 * Requests that wait for a worker. A worker holds a job by a lease, which it must renew; a lease that runs out means
 * that its worker died.
 */
export interface JobQueue {
  /** Complete, and the sweeper for what a crash kept from the queue. Adding twice is harmless. */
  add(requestId: string): Promise<void>;
  /** The worker: the job that has waited longest, or null. */
  claim(leaseMs: number): Promise<Job | null>;
  /** The worker, while it works. False when the lease is no longer its own. */
  renew(job: Job, leaseMs: number): Promise<boolean>;
  /** The worker: lets another try. `died` counts as a death. */
  release(job: Job, how: { died: boolean }): Promise<void>;
  /**
   * The worker before it looks for work: leases that ran out are counted as deaths and free again. Leases given out
   * by this very queue object do not run out: their worker is in this process, and it is alive.
   */
  releaseDead(): Promise<Job[]>;
  /** The worker when it is done, delete and the sweeper. Harmless when it is not there. */
  remove(requestId: string): Promise<void>;
  /** Metrics. */
  waiting(): Promise<number>;
}

export interface Job {
  readonly requestId: string;
  /** Names this very holding of the job. */
  readonly lease: string;
  /** Workers that were lost over it before. */
  readonly deaths: number;
}
