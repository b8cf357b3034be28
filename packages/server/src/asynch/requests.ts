import type { PendingResult, StatusResult } from '@undertone/contract';
import { ProblemError } from '../problems.ts';
import type { AsynchRequest, RequestStore } from '../stores/request-store.ts';
import { answerOf, stepsOf } from './result.ts';

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
  if ('result' in outcome) return { result: answerOf(outcome.result) };
  const { code, detail, figures } = outcome.failure;
  // Always 422, also where the discrete interface answers the same cause with 400.
  throw new ProblemError(code, detail, { figures: { ...figures }, status: 422 });
}

/** The same for the second generation of existing clients: always an answer, with states under their names. */
export async function readStatus(
  requests: RequestStore,
  id: string,
  owner: string,
  { comprehensive }: { comprehensive: boolean },
): Promise<StatusResult> {
  const { state, progress, id: request_id, intervalSeconds } = await ownRequest(requests, id, owner);
  const status = STATUS_NAMES[state as keyof typeof STATUS_NAMES];
  if (state !== 'completed' && state !== 'failed') {
    return { request_id, status, progress: Number(progress.toFixed(4)) };
  }
  const outcome = await requests.outcome(request_id);
  if (outcome === null) throw gone();
  if ('failure' in outcome) {
    const { code, detail } = outcome.failure;
    return { request_id, status, error: detail, error_code: code.toUpperCase() };
  }
  const emotions = stepsOf(outcome.result, intervalSeconds).map(
    ({ t, start, end, emotion, confidence, all_predictions }) => ({
      t,
      timestamp: (start + end) / 2,
      start_time: start,
      end_time: end,
      emotion,
      confidence,
      ...(comprehensive && all_predictions && { all_predictions }),
    }),
  );
  return { request_id, status, emotions };
}

const STATUS_NAMES = {
  uploading: 'initiated',
  queued: 'upload_completed',
  processing: 'processing',
  completed: 'completed',
  failed: 'failed',
} as const;

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
