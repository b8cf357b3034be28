import { createHash, randomUUID } from 'node:crypto';
import {
  ASYNCH_LIMITS,
  DEFAULT_MODEL,
  IDEMPOTENCY_KEY_HEADER,
  INTERVAL_SECONDS,
  type SendQuery,
} from '@undertone/contract';
import { ProblemError } from '../problems.ts';
import type { AsynchRequest, Idempotency, NewRequest, RequestStore } from '../stores/request-store.ts';

/** A call that makes a request, as far as it matters for the request. */
export interface Making {
  readonly owner: string;
  readonly method: string;
  readonly query: SendQuery & { readonly part_count?: number };
  /** As it was sent. */
  readonly idempotencyKey: string | undefined;
  /** Of a whole recording in one call. */
  readonly uploadLeaseMs?: number;
}

const RETRY_AFTER_SECONDS = 5;

/**
 * The request that a call asks for: a new one, or the one that the same call made before. file_name is asked for because
 * clients send it. Nothing needs it, so it is neither kept nor used.
 */
export async function makeRequest(
  requests: RequestStore,
  making: Making,
): Promise<{ request: AsynchRequest; isNew: boolean }> {
  const { owner, query, uploadLeaseMs } = making;
  const request: NewRequest = {
    id: randomUUID(),
    owner,
    uploadId: randomUUID(),
    model: query.model ?? DEFAULT_MODEL,
    intervalSeconds: stepOf(query),
    channels: query.channels ?? 'mix',
    label: query.label ?? null,
    webhookUrl: query.webhook_url ?? null,
    partCount: query.part_count ?? 1,
    ...(uploadLeaseMs !== undefined && { uploadLeaseMs }),
  };
  const idempotency = idempotencyOf(making);
  if (idempotency === null) return { request: await requests.create(request), isNew: true };
  const made = await requests.createOnce(request, idempotency);
  if ('request' in made) return made;
  if (made.inUse === 'other_query') {
    throw new ProblemError(
      'conflict',
      'This Idempotency-Key was used for another request within the last 24 hours. Use a new key for each request.',
    );
  }
  throw new ProblemError('conflict', 'The first call with this Idempotency-Key is still running.', {
    figures: { retry_after_seconds: RETRY_AFTER_SECONDS },
    headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
  });
}

function stepOf({ interval, step }: SendQuery): number {
  if (interval !== undefined && step !== undefined && interval !== step) {
    throw new ProblemError('bad_request', 'interval and step are two names of one thing. Send one of them.');
  }
  return step ?? interval ?? INTERVAL_SECONDS.default;
}

/** Hashes: whatever a caller puts into the key or the query is compared, not kept. */
function idempotencyOf({ idempotencyKey: key, method, query }: Making): Idempotency | null {
  if (key === undefined) return null;
  if (key === '' || key.length > ASYNCH_LIMITS.maxIdempotencyKeyLength) {
    throw new ProblemError(
      'bad_request',
      `${IDEMPOTENCY_KEY_HEADER} must have 1 to ${ASYNCH_LIMITS.maxIdempotencyKeyLength} characters; a UUID is a good one.`,
    );
  }
  const sorted = Object.entries(query).sort(([a], [b]) => (a < b ? -1 : 1));
  return { key: hash(key), query: hash(JSON.stringify([method, sorted])) };
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
