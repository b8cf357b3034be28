import type { Dialect } from '../sql/database.ts';

/** Where processes notify each other: `queued`, or `over ID`. */
export const CHANNEL = 'undertone';

export const POSTGRES: Dialect = {
  forUpdate: 'FOR UPDATE',
  skipLocked: (table) => `FOR UPDATE OF ${table} SKIP LOCKED`,
  lock: (name) => `pg_advisory_xact_lock(hashtextextended(${name}, 0))`,
  notify: (payload) => `pg_notify('${CHANNEL}', ${payload})`,
  isOneOf: (column, name) => `${column} = ANY(CAST(:${name} AS text[]))`,
  elements: (name) => `json_array_elements(CAST(:${name} AS json))`,
  greatest: (one, other) => `greatest(${one}, ${other})`,
  waitingRequests: 'requests',
  // After a minute a bucket is full again, so its row is not needed.
  afterExpire: 'DELETE FROM rate_limits WHERE at < :now - 120000',
};
