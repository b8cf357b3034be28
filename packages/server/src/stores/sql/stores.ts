import type { SqlStores } from '../contracts.ts';
import type { SqlDatabase } from './database.ts';
import { SqlKeyStore } from './keys.ts';
import { SqlRequestStore } from './requests.ts';
import { SqlWebhookStore } from './webhooks.ts';

export function storesOn(database: SqlDatabase): SqlStores {
  return {
    requests: new SqlRequestStore(database),
    keys: new SqlKeyStore(database),
    webhooks: new SqlWebhookStore(database),
    close: () => database.close(),
  };
}
