import type { CallKind } from '../budgets.ts';

export type SqlValue = string | number | boolean | null | Uint8Array | readonly string[];
export type Values = Readonly<Record<string, SqlValue>>;

/** One statement with `:name` for its values. `:now` is always there: the store's time, the same all through a transaction. */
export type Query = <Row = object>(sql: string, values?: Values) => Promise<Row[]>;

/** A database as the stores use it. SQL is written once; where the two databases differ, their dialect has the fragment. */
export interface SqlDatabase {
  readonly dialect: Dialect;
  /** Milliseconds since it was last unavailable here, for all calls; 0 if it is now. */
  readonly availableMs: number;
  readonly query: Query;
  /** All or nothing. `work` may run again after a conflict with another transaction, so it changes nothing else. */
  transaction<T>(work: (query: Query) => Promise<T>): Promise<T>;
  /** The same database for calls of this kind. */
  within(kind: CallKind): SqlDatabase;
  close(): Promise<void>;
}

/** SQL fragments. Empty, or NULL, where SQLite has no need: its transactions run one at a time, in one process. */
export interface Dialect {
  /** Ends a SELECT: other transactions wait for these rows. */
  readonly forUpdate: string;
  /** Ends a SELECT: rows that another transaction has locked are left out. */
  skipLocked(table: string): string;
  /** An expression that waits until no other transaction holds the lock with this name. */
  lock(name: string): string;
  /** An expression that notifies other processes when the transaction commits. */
  notify(payload: string): string;
  /** True if the column is in the list `:name`. */
  isOneOf(column: string, name: string): string;
  /** A table with one column, `value`: the elements of the JSON array `:name`. */
  elements(name: string): string;
  greatest(one: string, other: string): string;
  /** The table `requests`, read through the index of unfinished requests. */
  readonly waitingRequests: string;
  /** Gives unused space back to the file system: `step` a little of it, as long as `isDue` has a row with a true `due`. */
  readonly shrink?: { readonly isDue: string; readonly step: string };
  /** A statement to run after each sweep. */
  readonly afterExpire: string;
}

/** `:name`, but not `::type`. */
export const PARAMETER = /(?<!:):([a-z]\w*)/gi;
