/** Every call is answered within a second, whatever the disk or the database does. */
export const ANSWER_MS = 950;

/** The store cannot be read or written now: a full disk, a database that somebody else holds. Passes by itself. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';
  /** Completes "the server cannot store anything now: ...". */
  readonly reason: string;

  constructor(reason: string, options?: ErrorOptions) {
    super(`The store is not available: ${reason}`, options);
    this.reason = reason;
  }
}
