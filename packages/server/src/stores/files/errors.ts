import { StoreUnavailableError } from '../unavailable.ts';

const FULL = 'its disk is full';
const READ_ONLY = 'its data folder cannot be written to';
const LOCKED = 'its database is locked by another program';
const DISK_ERRORS = 'its disk has errors';
const TOO_MANY_FILES = 'it has too many files open';

/** By the primary result codes of SQLite. */
const DATABASE_ERRORS = new Map([
  [5, LOCKED], // BUSY
  [6, LOCKED], // LOCKED
  [8, READ_ONLY],
  [10, DISK_ERRORS], // IOERR
  [13, FULL],
  [14, READ_ONLY], // CANTOPEN
  [15, LOCKED], // PROTOCOL: several processes opened it in the same moment
]);

const FILE_ERRORS = new Map([
  ['ENOSPC', FULL],
  ['EDQUOT', FULL],
  ['EROFS', READ_ONLY],
  ['EACCES', READ_ONLY],
  ['EPERM', READ_ONLY],
  ['EIO', DISK_ERRORS],
  ['EMFILE', TOO_MANY_FILES],
  ['ENFILE', TOO_MANY_FILES],
]);

/** Errors of the disk and of the database that pass, as StoreUnavailableError; any other error as it is. */
export function asUnavailable(error: unknown): unknown {
  const reason = reasonOf(error);
  return reason === undefined ? error : new StoreUnavailableError(reason, { cause: error });
}

/** Somebody else writes to the database at this moment. */
export function isBusy(error: unknown): boolean {
  return reasonOf(error) === LOCKED;
}

function reasonOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, errcode } = error as { code?: string; errcode?: unknown };
  // Extended result codes of SQLite have the primary one in their lowest byte.
  if (typeof errcode === 'number') return DATABASE_ERRORS.get(errcode & 0xff);
  return FILE_ERRORS.get(code ?? '');
}
