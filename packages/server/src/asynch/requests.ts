import type { PendingResult } from '@undertone/contract';
import { ProblemError } from '../problems.ts';
import type { AsynchRequest, RequestStore } from '../stores/request-store.ts';

/** A request belongs to the key that made it; to others it does not exist. */
export async function ownRequest(requests: RequestStore, id: string, owner: string): Promise<AsynchRequest> {
  const request = await requests.find(id.toLowerCase());
  return requireLiving(request?.owner === owner ? request : null);
}

/** The request, if parts may still arrive for it. */
export function requireUploading(request: AsynchRequest | null): AsynchRequest {
  const living = requireLiving(request);
  if (living.state !== 'uploading') {
    throw new ProblemError('conflict', 'This upload is complete: its parts cannot change any more.');
  }
  return living;
}

/** How far it is, or the text of its result. Throws the problem of one that failed. */
export async function readPrediction(
  requests: RequestStore,
  id: string,
  owner: string,
): Promise<{ pending: PendingResult } | { result: string }> {
  const { state, progress, id: request_id } = await ownRequest(requests, id, owner);
  if (state !== 'completed' && state !== 'failed') {
    const status = state as PendingResult['status'];
    return { pending: { request_id, status, progress: Number(progress.toFixed(4)) } };
  }
  const outcome = await requests.outcome(request_id);
  if (outcome === null) throw gone();
  if ('result' in outcome) return outcome;
  const { code, detail, figures } = outcome.failure;
  // Always 422, also where the discrete interface answers the same cause with 400.
  throw new ProblemError(code, detail, { figures: { ...figures }, status: 422 });
}

function requireLiving(request: AsynchRequest | null): AsynchRequest {
  if (request === null) throw notFound();
  if (request.state === 'expired') throw gone();
  return request;
}

export function notFound(): ProblemError {
  return new ProblemError('not_found', 'There is no request with this request_id.');
}

function gone(): ProblemError {
  return new ProblemError('gone', 'This request expired 24 hours after it was made. Upload the file again.');
}
