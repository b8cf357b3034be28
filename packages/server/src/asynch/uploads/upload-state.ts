import { ProblemError } from '../../problems.ts';
import type { AsynchRequest } from '../stores/request-store.ts';

/** The request, unless it is unknown or its time is over. */
export function requireLiving(request: AsynchRequest | null): AsynchRequest {
  if (request === null) throw new ProblemError('not_found', 'There is no request with this request_id.');
  if (request.state === 'expired') {
    throw new ProblemError('gone', 'This request expired 24 hours after it was made; upload the file again.');
  }
  return request;
}

/** The request, if parts may still arrive for it. */
export function requireUploading(request: AsynchRequest | null): AsynchRequest {
  const living = requireLiving(request);
  if (living.state !== 'uploading') {
    throw new ProblemError('conflict', 'This upload is complete: its parts cannot change any more.');
  }
  return living;
}

/** A request belongs to the key that made it; to others it does not exist. */
export function requireOwned(request: AsynchRequest | null, owner: string): AsynchRequest {
  return requireLiving(request?.owner === owner ? request : null);
}
