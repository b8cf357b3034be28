// Everything that can make a store unavailable for a while, by backend. Any other error is a bug and stays as it is.

/** The store cannot be read or written now, for example because the disk is full. Retrying later can work. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';
  /** Completes "the server cannot store anything now: ...". */
  readonly reason: string;

  constructor(reason: string, options?: ErrorOptions) {
    super(`The store is unavailable: ${reason}`, options);
    this.reason = reason;
  }
}

/** The owner has as much as it may have. Nothing was written. */
export class QuotaExceededError extends Error {
  override readonly name = 'QuotaExceededError';
  readonly quota: 'open' | 'queued' | 'storage';
  readonly limit: number;
  readonly used: number;

  constructor({ quota, limit, used }: Pick<QuotaExceededError, 'quota' | 'limit' | 'used'>) {
    super(`${used} of ${limit} are used (${quota})`);
    this.quota = quota;
    this.limit = limit;
    this.used = used;
  }
}

const FULL = 'its disk is full';
const READ_ONLY = 'its data folder cannot be written to';
const LOCKED = 'its database is locked by another program';
const DISK_ERRORS = 'its disk has errors';
const TOO_MANY_FILES = 'it has too many files open';

/** By SQLite's primary result code. */
const SQLITE_REASONS = new Map([
  [5, LOCKED], // BUSY
  [6, LOCKED], // LOCKED
  [8, READ_ONLY],
  [10, DISK_ERRORS], // IOERR
  [13, FULL],
  [14, READ_ONLY], // CANTOPEN
  [15, LOCKED], // PROTOCOL: several processes opened it at the same moment
]);

const FILE_REASONS = new Map([
  ['ENOSPC', FULL],
  ['EDQUOT', FULL],
  ['EROFS', READ_ONLY],
  ['EACCES', READ_ONLY],
  ['EPERM', READ_ONLY],
  ['EIO', DISK_ERRORS],
  ['EMFILE', TOO_MANY_FILES],
  ['ENFILE', TOO_MANY_FILES],
]);

/** Errors from files and SQLite. */
export function fromDisk(error: unknown): unknown {
  return unavailable(diskReason(error), error);
}

/** Another process is writing to the SQLite database. */
export function isBusy(error: unknown): boolean {
  return diskReason(error) === LOCKED;
}

function diskReason(error: unknown): string | undefined {
  const { code, errcode } = fieldsOf(error);
  // The lowest byte of SQLite's extended result codes is the primary one.
  return typeof errcode === 'number' ? SQLITE_REASONS.get(errcode & 0xff) : FILE_REASONS.get(code ?? '');
}

/** By SQLSTATE, or by its class (the first two characters). */
const POSTGRES_REASONS = new Map([
  ['08', 'the connection to its database broke'],
  ['25006', 'its database is read-only now'],
  ['28', 'its database refuses the user or password'],
  ['3D', 'its database does not exist'],
  ['40', 'its database is too busy'], // deadlocks and the like, after several retries
  ['42501', 'its user may not write to the database'],
  ['53', 'its database has no space or no free connection'],
  ['55P03', 'its database is locked by another program'],
  ['57014', 'its database answers too slowly'],
  ['57', 'its database is stopping or starting'],
  ['58', 'its database has a disk error'],
]);

/** Errors from PostgreSQL. Only those that its server sent have a severity. */
export function fromPostgres(error: unknown): unknown {
  if (error instanceof StoreUnavailableError || !(error instanceof Error)) return error;
  const { code = '', severity } = fieldsOf(error);
  if (severity !== undefined) {
    return unavailable(POSTGRES_REASONS.get(code) ?? POSTGRES_REASONS.get(code.slice(0, 2)), error);
  }
  // The client library throws plain errors for everything that happens to a connection.
  const isPlain = error.constructor === Error || error.constructor === AggregateError;
  return unavailable(isPlain ? 'its database cannot be reached' : undefined, error);
}

/** The server answered with an error, and the connection is still usable. */
export function isServerError(error: unknown): boolean {
  const { severity } = fieldsOf(error);
  return severity !== undefined && severity !== 'FATAL';
}

/** A deadlock or serialization failure: the transaction has to be retried. */
export function isConflict(error: unknown): boolean {
  return isServerError(error) && ['40P01', '40001'].includes(fieldsOf(error).code ?? '');
}

const CREDENTIALS = 'its object store refuses the credentials';
const OBJECT_STORE_BUSY = 'its object store is too busy';

const S3_REASONS = new Map([
  ['NoSuchBucket', 'its bucket does not exist'],
  ['AccessDenied', CREDENTIALS],
  ['Forbidden', CREDENTIALS],
  ['InvalidAccessKeyId', CREDENTIALS],
  ['SignatureDoesNotMatch', CREDENTIALS],
  ['ExpiredToken', CREDENTIALS],
  ['CredentialsProviderError', 'there are no credentials for its object store'],
  ['SlowDown', OBJECT_STORE_BUSY],
  ['TooManyRequests', OBJECT_STORE_BUSY],
]);

/** Errors from S3. */
export function fromS3(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { code, $metadata } = fieldsOf(error);
  const status = $metadata?.httpStatusCode ?? 0;
  const isNetwork = code !== undefined || error.name === 'TimeoutError' || error.name === 'AbortError';
  const reason =
    S3_REASONS.get(error.name) ??
    (status >= 500 ? 'its object store has an error' : undefined) ??
    (status === 0 && isNetwork ? 'its object store cannot be reached' : undefined);
  return unavailable(reason, error);
}

interface ErrorFields {
  readonly code?: string;
  readonly errcode?: unknown;
  readonly severity?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

function fieldsOf(error: unknown): ErrorFields {
  return error instanceof Error ? (error as ErrorFields) : {};
}

function unavailable(reason: string | undefined, cause: unknown): unknown {
  return reason === undefined ? cause : new StoreUnavailableError(reason, { cause });
}
