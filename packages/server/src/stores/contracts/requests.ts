import type { RequestState } from '@undertone/contract';
import type { QueueStore } from './queue.ts';
import type { AsynchRequest } from './request.ts';
import type { ResultStore } from './results.ts';
import type { SweepStore } from './sweep.ts';
import type { UploadStore } from './uploads.ts';

export interface ListOptions {
  readonly limit: number;
  /** Only this state. Expired requests are listed only when asked for. */
  readonly state?: RequestState | undefined;
  /** Only requests after this one. */
  readonly after?: { readonly createdAt: number; readonly id: string } | undefined;
}

/** What waits for a worker. */
export interface Backlog {
  /** Requests that are processing, but whose worker no longer renews its lease. */
  readonly abandoned: number;
  /** Time since the oldest request that waits was created. 0 if none waits. */
  readonly oldestMs: number;
}

/** All of the life of a request, which is described at AsynchRequest. */
export interface RequestStore extends UploadStore, QueueStore, ResultStore, SweepStore {
  /** List. Newest first. */
  list(owner: string, options: ListOptions): Promise<AsynchRequest[]>;
  /** Every route. Null when unknown or deleted; `expired` even before `expire` has run. Never reads the result. */
  find(id: string): Promise<AsynchRequest | null>;
  /** Delete. `already`: it was deleted before. `unknown`: there is none, or it has another owner. */
  delete(id: string, owner: string): Promise<'deleted' | 'already' | 'unknown'>;
  /** Metrics. */
  countByState(): Promise<Partial<Record<RequestState, number>>>;
  /** Metrics. */
  backlog(): Promise<Backlog>;
  /** `/readyz`: writes. */
  checkWritable(): Promise<void>;
}
