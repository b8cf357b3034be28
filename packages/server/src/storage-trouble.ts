const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;

const FULL = 'its disk is full';
const CLOSED = 'its data folder cannot be written to';
const LOCKED = 'its database is locked by another program';
const DAMAGED = 'its disk has errors';
const TOO_MANY_FILES = 'it has too many files open';

/** By the result codes of SQLite. */
const DATABASE_TROUBLE = new Map([
  [SQLITE_BUSY, LOCKED],
  [SQLITE_LOCKED, LOCKED],
  [8, CLOSED], // READONLY
  [10, DAMAGED], // IOERR
  [13, FULL],
  [14, CLOSED], // CANTOPEN
]);

const DISK_TROUBLE = new Map([
  ['ENOSPC', FULL],
  ['EDQUOT', FULL],
  ['EROFS', CLOSED],
  ['EACCES', CLOSED],
  ['EPERM', CLOSED],
  ['EIO', DAMAGED],
  ['EMFILE', TOO_MANY_FILES],
  ['ENFILE', TOO_MANY_FILES],
]);

/** What keeps the server from storing anything, in words that follow "the server cannot store anything:". */
export function storageTrouble(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code } = error as NodeJS.ErrnoException;
  return DATABASE_TROUBLE.get(databaseCode(error) ?? 0) ?? DISK_TROUBLE.get(code ?? '');
}

export function isLocked(error: unknown): boolean {
  const code = error instanceof Error ? databaseCode(error) : undefined;
  return code === SQLITE_BUSY || code === SQLITE_LOCKED;
}

/** Extended result codes carry the plain one in their lowest byte. */
function databaseCode(error: Error): number | undefined {
  const { errcode } = error as { errcode?: unknown };
  return typeof errcode === 'number' ? errcode & 0xff : undefined;
}
