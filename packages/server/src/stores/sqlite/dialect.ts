import type { Dialect } from '../sql/database.ts';

/** Up to a quarter of the file, and 4 MiB, stay free for what comes next. */
const EXCESS_PAGES = `(SELECT freelist_count FROM pragma_freelist_count) > 1024
  AND (SELECT freelist_count FROM pragma_freelist_count) > (SELECT page_count FROM pragma_page_count) / 4`;

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
  shrink: {
    // 2 is INCREMENTAL, which a large database of an earlier version does not have.
    isDue: `SELECT (SELECT auto_vacuum FROM pragma_auto_vacuum) = 2 AND ${EXCESS_PAGES} AS due`,
    // 2 MiB: other calls wait for no longer than that takes.
    step: 'PRAGMA incremental_vacuum(512)',
  },
  // Erased data stays in the write-ahead log until that is truncated.
  afterExpire: 'PRAGMA wal_checkpoint(TRUNCATE)',
};
