// What the rest of the server may ask of the stores that keep rows, by subject in `contracts/`. The contract for
// recordings is in `blobs.ts`. Every method rejects with StoreUnavailableError, within its budget (`budgets.ts`), while its store cannot do it.
import type { KeyStore } from './contracts/keys.ts';
import type { LedgerStore } from './contracts/ledger.ts';
import type { RequestStore } from './contracts/requests.ts';
import type { WebhookStore } from './contracts/webhooks.ts';

export type * from './contracts/keys.ts';
export type * from './contracts/ledger.ts';
export type * from './contracts/queue.ts';
export type * from './contracts/request.ts';
export type * from './contracts/requests.ts';
export type * from './contracts/results.ts';
export type * from './contracts/sweep.ts';
export * from './contracts/uploads.ts';
export type * from './contracts/webhooks.ts';

/** The stores that one database holds. */
export interface SqlStores {
  readonly requests: RequestStore;
  readonly keys: KeyStore;
  readonly webhooks: WebhookStore;
  readonly ledger: LedgerStore;
  close(): Promise<void>;
}
