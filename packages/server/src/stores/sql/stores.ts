import type { SqlStores } from '../contracts.ts';
import type { SqlDatabase } from './database.ts';
import { SqlKeyStore } from './keys.ts';
import { SqlLedgerStore } from './ledger.ts';
import { SqlRequestStore } from './requests.ts';
import { SqlWebhookStore } from './webhooks.ts';

export function storesOn(database: SqlDatabase): SqlStores {
  return {
    requests: new SqlRequestStore(database),
    keys: new SqlKeyStore(database),
    webhooks: new SqlWebhookStore(database),
    ledger: new SqlLedgerStore(database),
    close: () => database.close(),
  };
}
