import type { AsynchRequest, Trace } from './request.ts';

export interface ClaimOptions {
  readonly leaseMs: number;
  /** Leases of this process, known to be alive. */
  readonly running: readonly string[];
  /** Their requests are left out. */
  readonly exceptOwners?: readonly string[];
}

/** A request that a worker holds. */
export interface Claim {
  readonly request: AsynchRequest;
  /** A new one for every claim. */
  readonly lease: string;
  readonly failedAttempts: number;
  /** How often it was requeued without a failed attempt. */
  readonly postponed: number;
  /** Time since it was queued. */
  readonly waitedMs: number;
  readonly trace: Trace | null;
}

export interface RequeueOptions {
  readonly countAttempt: boolean;
  /** No worker claims it before. Default: at once. */
  readonly afterMs?: number;
}

/** The part of the RequestStore that hands requests to workers. */
export interface QueueStore {
  /**
   * The worker, in one statement: the next request, or one whose lease has expired (a failed attempt). Owners take turns;
   * within an owner the request that was queued first comes first. A request that was requeued for later is left out until then.
   */
  claim(options: ClaimOptions): Promise<Claim | null>;
  /** The worker, every few seconds: progress and lease in one write. False when it no longer holds the request. */
  renew(id: string, lease: string, options: { leaseMs: number; progress: number }): Promise<boolean>;
  /** The worker: processing -> queued, at the same place in the queue. False when it no longer holds the request. */
  requeue(id: string, lease: string, options: RequeueOptions): Promise<boolean>;
}

/** What one process tells the others. Hints only: workers also poll. */
export interface RequestEvents {
  /** A request is waiting for a worker. */
  queued(): void;
  /** A request that was being processed was deleted or has expired. */
  over(id: string): void;
}
