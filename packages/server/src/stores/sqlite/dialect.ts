import type { Dialect } from '../sql/database.ts';

/** Transactions run one at a time and no other process listens, so most fragments are empty. */
export const SQLITE: Dialect = {
  forUpdate: '',
  skipLocked: () => '',
  lock: () => 'NULL',
  notify: () => 'NULL',
  isOneOf: (column, name) => `${column} IN (SELECT value FROM json_each(:${name}))`,
  elements: (name) => `json_each(:${name})`,
  greatest: (one, other) => `max(${one}, ${other})`,
  // Without statistics SQLite would choose another index.
  waitingRequests: 'requests INDEXED BY requests_waiting',
  // Erased data stays in the write-ahead log until that is truncated.
  afterExpire: 'PRAGMA wal_checkpoint(TRUNCATE)',
};
