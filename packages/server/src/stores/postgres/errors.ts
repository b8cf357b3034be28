import pg from 'pg';
import { StoreUnavailableError } from '../unavailable.ts';

/** By SQLSTATE, or the two digits of its class. Everything else is a mistake of ours. */
const REASONS = new Map([
  ['08', 'the connection to its database broke'],
  ['25006', 'its database can only be read now'],
  ['28', 'its database refuses the user or password'],
  ['3D', 'its database does not exist'],
  ['40', 'its database is too busy'], // deadlocks and the like, after several tries
  ['42501', 'its user may not write to the database'],
  ['53', 'its database has no room or no free connection'],
  ['55P03', 'its database is locked by another program'],
  ['57014', 'its database answers too slowly'],
  ['57', 'its database is stopping or starting'],
  ['58', 'its database has a disk error'],
]);

/** Errors that pass, as StoreUnavailableError; any other error as it is. */
export function asUnavailable(error: unknown): unknown {
  if (error instanceof StoreUnavailableError || !(error instanceof Error)) return error;
  if (error instanceof pg.DatabaseError) {
    const { code = '' } = error;
    const reason = REASONS.get(code) ?? REASONS.get(code.slice(0, 2));
    return reason === undefined ? error : new StoreUnavailableError(reason, { cause: error });
  }
  // The client library has plain errors for whatever happens to a connection.
  if (error.constructor !== Error && error.constructor !== AggregateError) return error;
  return new StoreUnavailableError('its database cannot be reached', { cause: error });
}

/** The server answered, and the connection is in order. */
export function isFromServer(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && error.severity !== 'FATAL';
}

/** Two transactions were in each other's way: one of them is to try again. */
export function isConflict(error: unknown): boolean {
  return isFromServer(error) && (error.code === '40P01' || error.code === '40001');
}
