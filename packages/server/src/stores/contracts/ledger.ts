import type { Quota } from './uploads.ts';

/** What an owner has now; its audio in the last 24 hours. */
export interface OwnerUse extends Quota {
  readonly audioSeconds: number;
}

/** What owners use. Open uploads, queued requests and stored bytes are counted from the requests themselves. */
export interface LedgerStore {
  /** Every few seconds: classified audio by owner. It remains when a request is deleted. */
  addAudio(seconds: ReadonlyMap<string, number>): Promise<void>;
  /** Of the last 24 hours. */
  audioSeconds(owner: string): Promise<number>;
  /** The command line and metrics: every owner that has something. */
  use(): Promise<Map<string, OwnerUse>>;
}
