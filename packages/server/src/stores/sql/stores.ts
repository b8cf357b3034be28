import { kindOf } from '../budgets.ts';
import type { SqlStores } from '../contracts.ts';
import type { SqlDatabase } from './database.ts';
import { SqlKeyStore } from './keys.ts';
import { SqlLedgerStore } from './ledger.ts';
import { requestStore } from './requests.ts';
import { SqlWebhookStore } from './webhooks.ts';

export function storesOn(database: SqlDatabase): SqlStores {
  return {
    requests: byKind('requests', database, requestStore),
    keys: byKind('keys', database, (within) => new SqlKeyStore(within)),
    webhooks: byKind('webhooks', database, (within) => new SqlWebhookStore(within)),
    ledger: new SqlLedgerStore(database),
    close: () => database.close(),
  };
}

/** A store whose methods have the budget of their kind. */
function byKind<T extends object>(name: string, database: SqlDatabase, make: (within: SqlDatabase) => T): T {
  const stores = { answer: make(database), long: make(database.within('long')) };
  return new Proxy(stores.answer, {
    get: (_, method) => {
      const store = stores[kindOf(name, String(method))];
      const found: unknown = Reflect.get(store, method);
      return typeof found === 'function' ? found.bind(store) : found;
    },
  });
}
