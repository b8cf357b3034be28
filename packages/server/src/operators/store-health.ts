import type { FastifyBaseLogger } from 'fastify';
import type { BlobStore } from '../stores/blobs.ts';
import type { KeyStore, RequestStore } from '../stores/contracts.ts';
import { StoreUnavailableError } from '../stores/errors.ts';
import { atMostEvery } from './at-most-every.ts';

/** Each check writes to the stores, and anybody may ask. */
const WRITE_EVERY_MS = 10_000;
const READ_EVERY_MS = 1_000;

const STORES = ['database', 'recordings'] as const;
type StoreName = (typeof STORES)[number];

/** Why a store cannot be written. Null: it can. */
export type StoreStates = Readonly<Record<StoreName, string | null>>;

interface StoreHealthOptions {
  readonly requests: RequestStore;
  readonly blobs: BlobStore;
  readonly keys: KeyStore;
  readonly logger: FastifyBaseLogger;
  /** Shorter in tests. */
  readonly writeEveryMs?: number | undefined;
}

/** What readiness and metrics report about the stores. Checked when somebody asks; all who ask share one check. */
export class StoreHealth {
  readonly states: () => Promise<StoreStates>;
  /** True if the database can look up a key now. */
  readonly canLookUpKeys: () => Promise<boolean>;
  readonly #logger: FastifyBaseLogger;
  #latest: StoreStates = { database: null, recordings: null };
  #checkedAt = Number.NEGATIVE_INFINITY;

  constructor({ requests, blobs, keys, logger, writeEveryMs = WRITE_EVERY_MS }: StoreHealthOptions) {
    this.#logger = logger;
    this.states = atMostEvery(writeEveryMs, async () => {
      this.#checkedAt = performance.now();
      const [database, recordings] = await Promise.all([
        reasonOf(() => requests.checkWritable()),
        reasonOf(() => blobs.checkWritable()),
      ]);
      return this.#logChanges({ database, recordings });
    });
    this.canLookUpKeys = atMostEvery(
      READ_EVERY_MS,
      async () => (await reasonOf(() => keys.lookUpId(''))) === null,
    );
  }

  /** False also while the latest check is older than that, because none is due yet. `since`: by `performance.now`. */
  async couldStoreRecordings(since: number): Promise<boolean> {
    const checking = this.states();
    const checkedAt = this.#checkedAt;
    return (await checking).recordings === null && checkedAt >= since;
  }

  #logChanges(states: StoreStates): StoreStates {
    for (const store of STORES) {
      const why = states[store];
      if ((why === null) === (this.#latest[store] === null)) continue;
      if (why === null) this.#logger.info({ store }, 'the store can be written again');
      else this.#logger.error({ store, why }, 'the store cannot be written');
    }
    this.#latest = states;
    return states;
  }
}

async function reasonOf(check: () => Promise<unknown>): Promise<string | null> {
  try {
    await check();
    return null;
  } catch (error) {
    return error instanceof StoreUnavailableError ? error.reason : 'its check failed';
  }
}
