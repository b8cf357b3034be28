import {
  LIST_LIMIT,
  type ListQuery,
  type PendingResult,
  type RequestList,
  type StatusResult,
} from '@undertone/contract';
import { ProblemError } from '../problems.ts';
import type { AsynchRequest, RequestStore } from '../stores/contracts.ts';
import { answerOf, detailsOf } from './result.ts';

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
  { details }: { details: boolean },
): Promise<{ pending: PendingResult } | { result: string }> {
  const request = await ownRequest(requests, id, owner);
  const { state, progress, id: request_id } = request;
  if (state !== 'completed' && state !== 'failed') {
    const status = state as PendingResult['status'];
    return { pending: { request_id, status, progress: Number(progress.toFixed(4)) } };
  }
  const outcome = await requests.outcome(request_id);
  if (outcome === null) throw gone();
  if ('result' in outcome) return { result: answerOf(outcome.result, request, { details }) };
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
  const request = await ownRequest(requests, id, owner);
  const { state, progress, id: request_id } = request;
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
  const emotions = detailsOf(outcome.result, request).emotions.map(
    ({ t, channel, start, end, emotion, confidence, all_predictions }) => ({
      t,
      ...(channel !== undefined && { channel }),
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

/** A page of the requests of a key, newest first. */
export async function listRequests(
  requests: RequestStore,
  owner: string,
  { status: state, limit = LIST_LIMIT.default, cursor }: ListQuery,
): Promise<RequestList> {
  const after = cursor === undefined ? undefined : readCursor(cursor);
  // One more than asked for tells whether there is another page.
  const found = await requests.list(owner, { limit: limit + 1, state, after });
  const page = found.slice(0, limit);
  const last = page.at(-1);
  return {
    requests: page.map((request) => ({
      request_id: request.id,
      label: request.label,
      status: request.state,
      progress: Number(request.progress.toFixed(4)),
      created_at: new Date(request.createdAt).toISOString(),
      expires_at: new Date(request.expiresAt).toISOString(),
      duration_seconds: request.durationSeconds,
    })),
    next_cursor: found.length > limit && last ? `${last.createdAt}.${last.id}` : null,
  };
}

function readCursor(cursor: string): { createdAt: number; id: string } {
  const [, createdAt, id] = /^(\d{1,15})\.([\w-]+)$/.exec(cursor) ?? [];
  if (createdAt !== undefined && id !== undefined) return { createdAt: Number(createdAt), id };
  throw new ProblemError('bad_request', 'The cursor is not one that a list ended with. Begin without one.');
}

const STATUS_NAMES = {
  uploading: 'initiated',
  queued: 'upload_completed',
  processing: 'processing',
  completed: 'completed',
  failed: 'failed',
} as const;

export function requireLiving(request: AsynchRequest | null): AsynchRequest {
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
