import type { KeyStore } from '../key-store.ts';
import type { RequestStore } from '../request-store.ts';
import { ANSWER_MS } from '../unavailable.ts';
import type { WebhookStore } from '../webhook-store.ts';
import { openDatabase } from './database.ts';
import { SqliteKeyStore } from './keys.ts';
import { SqliteRequestStore } from './requests.ts';
import { RetryingDatabase } from './retrying-database.ts';
import { SqliteWebhookStore } from './webhooks.ts';

export interface Stores {
  readonly requests: RequestStore;
  readonly keys: KeyStore;
  readonly webhooks: WebhookStore;
  close(): Promise<void>;
}

export interface LocalStoresOptions {
  readonly dataDir: string;
  readonly now?: () => number;
  /** Longer in tests that are not about it. */
  readonly answerMs?: number | undefined;
}

/** The stores on the thread that calls: for the command line, tests, and the thread of `threaded-stores.ts`. */
export async function openLocalStores({
  dataDir,
  now = Date.now,
  answerMs = ANSWER_MS,
}: LocalStoresOptions): Promise<Stores> {
  const connection = await openDatabase(dataDir);
  const database = new RetryingDatabase(connection, answerMs);
  return {
    requests: new SqliteRequestStore(database, now),
    keys: new SqliteKeyStore(database, now),
    webhooks: new SqliteWebhookStore(database, now),
    close: async () => {
      if (connection.isOpen) connection.close();
    },
  };
}
