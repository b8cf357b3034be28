import { LIST_LIMIT, type ListQuery, type PendingResult, type RequestList } from '@undertone/contract';
import { ProblemError } from '../problems.ts';
import type { AsynchRequest, Outcome, RequestStore, ResultForm } from '../stores/contracts.ts';
import { answerOf } from './result.ts';
import { LAST_CHUNK } from './time-line.ts';

/** Another owner's request is a 404. */
export async function ownRequest(requests: RequestStore, id: string, owner: string): Promise<AsynchRequest> {
  const request = await requests.find(id.toLowerCase());
  return requireLiving(request?.owner === owner ? request : null);
}

export function requireUploading(request: AsynchRequest | null): AsynchRequest {
  const living = requireLiving(request);
  if (living.state !== 'uploading') {
    throw new ProblemError('conflict', 'This upload is complete. Its parts can no longer change.');
  }
  return living;
}

/** The progress, or the JSON text of the result, a large one in chunks. Throws the problem of a failed request. */
export async function readPrediction(
  requests: RequestStore,
  id: string,
  owner: string,
  { details }: { details: boolean },
): Promise<{ pending: PendingResult } | { result: string | AsyncIterable<string> }> {
  const request = await ownRequest(requests, id, owner);
  const { state, progress, id: request_id } = request;
  if (state !== 'completed' && state !== 'failed') {
    const status = state as PendingResult['status'];
    return { pending: { request_id, status, progress: Number(progress.toFixed(4)) } };
  }
  const outcome = await requireOutcome(requests, request_id);
  if ('chunked' in outcome) {
    return { result: await readChunks(requests, request_id, details ? 'detailed' : 'plain') };
  }
  if ('result' in outcome) return { result: answerOf(outcome.result, { details }) };
  const { code, detail, figures } = outcome.failure;
  // Always 422, even for causes that are a 400 for a short recording.
  throw new ProblemError(code, detail, { figures: { ...figures }, status: 422 });
}

/** Reads the first chunk at once: an error can still be answered as a problem. A later one breaks the connection. */
export async function readChunks(
  requests: RequestStore,
  id: string,
  form: ResultForm,
): Promise<AsyncIterable<string>> {
  async function read(number: number): Promise<string> {
    const text = await requests.resultChunk(id, form, number);
    if (text === null) throw gone();
    return text;
  }
  async function* chunks(first: string): AsyncGenerator<string> {
    yield first;
    for (let number = 1, text = ''; text !== LAST_CHUNK; number++) {
      text = await read(number);
      yield text;
    }
  }
  return chunks(await read(0));
}

export async function requireOutcome(requests: RequestStore, id: string): Promise<Outcome> {
  const outcome = await requests.outcome(id);
  if (outcome === null) throw gone();
  return outcome;
}

/** One page, newest first. */
export async function listRequests(
  requests: RequestStore,
  owner: string,
  { status: state, limit = LIST_LIMIT.default, cursor }: ListQuery,
): Promise<RequestList> {
  const after = cursor === undefined ? undefined : readCursor(cursor);
  // One extra row shows whether there is another page.
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
  throw new ProblemError(
    'bad_request',
    'Invalid cursor. Use the next_cursor of the previous page, or none for the first page.',
  );
}

export function requireLiving(request: AsynchRequest | null): AsynchRequest {
  if (request === null) throw notFound();
  if (request.state === 'expired') throw gone();
  return request;
}

export function notFound(): ProblemError {
  return new ProblemError('not_found', 'No request has this request_id.');
}

function gone(): ProblemError {
  return new ProblemError('gone', 'This request expired 24 hours after its creation. Upload the file again.');
}
