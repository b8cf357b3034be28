import { createHash, randomUUID } from 'node:crypto';
import {
  ASYNCH_LIMITS,
  DEFAULT_MODEL,
  IDEMPOTENCY_KEY_HEADER,
  INTERVAL_SECONDS,
  type SendQuery,
} from '@undertone/contract';
import { fileTooLarge, ProblemError } from '../problems.ts';
import type { AsynchRequest, Idempotency, NewRequest, RequestStore, Trace } from '../stores/contracts.ts';
import type { KeyLimits } from '../stores/key-limits.ts';

/** What a call says about the request it creates. */
export interface CreateCommand {
  readonly owner: string;
  readonly limits: KeyLimits;
  readonly method: string;
  readonly query: SendQuery & { readonly part_count?: number; readonly file_size?: number };
  /** As the client sent it. */
  readonly idempotencyKey: string | undefined;
  readonly trace: Trace;
  /** For a whole recording in one call. */
  readonly uploadLeaseMs?: number;
}

const RETRY_AFTER_SECONDS = 5;

/**
 * Creates a request, or finds the one that the same call created before. Clients send a file_name; nothing needs it, so it is
 * not stored.
 */
export async function createRequest(
  requests: RequestStore,
  command: CreateCommand,
): Promise<{ request: AsynchRequest; isNew: boolean }> {
  const { owner, limits, query, trace, uploadLeaseMs } = command;
  const { open, storage } = limits;
  // By parts, the queue counts when the upload is complete.
  const queued = uploadLeaseMs === undefined ? 0 : limits.queued;
  const announcedBytes = query.file_size;
  if (announcedBytes !== undefined && announcedBytes > ASYNCH_LIMITS.maxFileBytes) throw fileTooLarge();
  const quota = { open, storage, queued, announcedBytes };
  const request: NewRequest = {
    id: randomUUID(),
    owner,
    uploadId: randomUUID(),
    model: query.model ?? DEFAULT_MODEL,
    intervalSeconds: intervalOf(query),
    channels: query.channels ?? 'mix',
    label: query.label ?? null,
    webhookUrl: query.webhook_url ?? null,
    partCount: query.part_count ?? 1,
    trace,
    ...(uploadLeaseMs !== undefined && { uploadLeaseMs }),
  };
  const idempotency = idempotencyOf(command);
  if (idempotency === null) return { request: await requests.create(request, quota), isNew: true };
  const created = await requests.createOnce(request, idempotency, quota);
  if ('request' in created) return created;
  if (created.inUse === 'other_query') {
    throw new ProblemError(
      'conflict',
      'This Idempotency-Key was used for another request within the last 24 hours. Use a new key for each request.',
    );
  }
  throw new ProblemError(
    'conflict',
    `The first call with this Idempotency-Key is still running. Try again in ${RETRY_AFTER_SECONDS} seconds.`,
    {
      figures: { retry_after_seconds: RETRY_AFTER_SECONDS },
      headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
    },
  );
}

function intervalOf({ interval, step }: SendQuery): number {
  if (interval !== undefined && step !== undefined && interval !== step) {
    throw new ProblemError('bad_request', 'interval and step are the same setting. Send only one of them.');
  }
  return step ?? interval ?? INTERVAL_SECONDS.default;
}

/** Hashes: the caller's key and query are compared, not stored. */
function idempotencyOf({ idempotencyKey: key, method, query }: CreateCommand): Idempotency | null {
  if (key === undefined) return null;
  if (key === '' || key.length > ASYNCH_LIMITS.maxIdempotencyKeyLength) {
    throw new ProblemError(
      'bad_request',
      `${IDEMPOTENCY_KEY_HEADER} must have 1 to ${ASYNCH_LIMITS.maxIdempotencyKeyLength} characters. Use a UUID.`,
    );
  }
  const sorted = Object.entries(query).sort(([a], [b]) => (a < b ? -1 : 1));
  return { key: hash(key), query: hash(JSON.stringify([method, sorted])) };
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
