import { randomUUID } from 'node:crypto';
import { ASYNCH_LIMITS, type ChannelMode, type RequestState } from '@undertone/contract';
import { LATE_UPLOAD_MS } from '../blobs.ts';
import type { AsynchRequest, Idempotency, NewRequest, Trace } from '../contracts.ts';
import type { Dialect, Query, Values } from './database.ts';

export interface RequestRow {
  id: string;
  owner: string;
  upload_id: string;
  model: string;
  interval_seconds: number;
  channels: ChannelMode;
  label: string | null;
  webhook_url: string | null;
  part_count: number;
  state: RequestState | 'deleted';
  progress: number;
  duration_seconds: number | null;
  failed_attempts: number;
  postponed: number;
  lease_until: number | null;
  idempotency_query: string | null;
  trace: string | null;
  created_at: number;
  expires_at: number;
}

/** A row with what `toVisibleRequest` needs beside it. */
export interface VisibleRow extends RequestRow {
  arrived: number;
  expired: boolean | number;
}

/** The columns of a VisibleRow. */
export const VISIBLE = `requests.*, expires_at <= :now AS expired,
  (SELECT count(*) FROM parts WHERE request_id = requests.id AND state = 'uploading') AS arrived`;

/** Tombstone retention: after expiry a request is still answered with 410, or a second DELETE with 204. */
const TOMBSTONE_MS = ASYNCH_LIMITS.tombstoneSeconds * 1000;

/** Before this, even the tombstone is gone. */
export const TOMBSTONE_CUTOFF = `:now - ${TOMBSTONE_MS}`;

/** Only the holder of the lease, and only until the request expires. */
export const HELD = `id = :id AND state = 'processing' AND lease = :lease AND expires_at > :now`;
export const UPLOADING = `id = :id AND state = 'uploading' AND expires_at > :now`;

/** Bytes of all of the owner's requests. */
export const OWNER_BYTES = `
  (SELECT CAST(coalesce(sum(stored_bytes), 0) AS bigint) FROM requests AS own
   WHERE own.owner = requests.owner AND stored_bytes > 0)`;

export const INSERT_REQUEST = `
  INSERT INTO requests (id, owner, upload_id, model, interval_seconds, channels, label, webhook_url, part_count,
    idempotency_key, idempotency_query, trace, state, lease_until, created_at, expires_at, urls_until, blobs_due)
  VALUES (:id, :owner, :uploadId, :model, :intervalSeconds, :channels, :label, :webhookUrl, :partCount,
    :key, :query, :trace, 'uploading', :now + CAST(:uploadLeaseMs AS bigint), :now, :now + CAST(:retentionMs AS bigint),
    :now + ${LATE_UPLOAD_MS}, :now + CAST(:retentionMs AS bigint))
  RETURNING *`;

export function newRequestValues(request: NewRequest, idempotency?: Idempotency): Values {
  const { channels = 'mix', label = null, webhookUrl = null, uploadLeaseMs = null } = request;
  const { key = null, query = null } = idempotency ?? {};
  const retentionMs = ASYNCH_LIMITS.retentionSeconds * 1000;
  const trace = request.trace === undefined ? null : JSON.stringify(request.trace);
  return { ...request, channels, label, webhookUrl, uploadLeaseMs, key, query, trace, retentionMs };
}

export function toRequest(row: RequestRow, state: RequestState, progress: number): AsynchRequest {
  return {
    id: row.id,
    owner: row.owner,
    uploadId: row.upload_id,
    model: row.model,
    intervalSeconds: row.interval_seconds,
    channels: row.channels,
    label: row.label,
    webhookUrl: row.webhook_url,
    partCount: row.part_count,
    state,
    progress,
    durationSeconds: row.duration_seconds,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  };
}

export function toTrace({ trace }: Pick<RequestRow, 'trace'>): Trace | null {
  return trace === null ? null : JSON.parse(trace);
}

/** The request as callers see it: expired on time, and an upload's progress is the share of parts that have arrived. */
export function toVisibleRequest(row: VisibleRow | undefined): AsynchRequest | null {
  if (row === undefined || row.state === 'deleted') return null;
  const state = row.expired ? 'expired' : row.state;
  return toRequest(row, state, state === 'uploading' ? row.arrived / row.part_count : row.progress);
}

export async function findRequest(query: Query, id: string): Promise<AsynchRequest | null> {
  const [row] = await query<VisibleRow>(
    `SELECT ${VISIBLE} FROM requests WHERE id = :id AND expires_at > ${TOMBSTONE_CUTOFF}`,
    { id },
  );
  return toVisibleRequest(row);
}

export const UNFINISHED = `state IN ('uploading', 'queued', 'processing')`;

/** An unfinished request that expires keeps what its webhook needs, until that is delivered or given up. */
const KEPT = `:state = 'expired' AND webhook_url IS NOT NULL AND ${UNFINISHED}`;

const ERASED = `upload_id = '', model = '', interval_seconds = 0, channels = 'mix',
  label = CASE WHEN ${KEPT} THEN label END, webhook_url = CASE WHEN ${KEPT} THEN webhook_url END,
  trace = CASE WHEN ${KEPT} THEN trace END, part_count = 0, progress = 0, duration_seconds = NULL, idempotency_key = NULL,
  idempotency_query = NULL, queued_at = NULL, lease = NULL, lease_until = NULL, failed_attempts = 0, stored_bytes = 0,
  blobs_due = CASE WHEN blobs_due > :now THEN :now ELSE blobs_due END`;

/** Rows that one transaction changes: few enough that other calls do not wait for it. */
export const BATCH_ROWS = 200;

interface TombstoneOptions {
  readonly state: 'expired' | 'deleted';
  readonly where: string;
  readonly values?: Values;
  /** Ends the SELECT: order, limit and lock. All of them, in no order, by default. */
  readonly tail?: string;
}

type Tombstoned = Pick<RequestRow, 'id' | 'state' | 'created_at' | 'webhook_url'>;

/**
 * Part of a transaction: erases requests down to id, owner and times, and notifies the workers that hold them. Those that
 * expire unfinished get a webhook, if they want one. Returns those that it erased, as they were.
 */
export async function tombstoneRequests(
  query: Query,
  dialect: Dialect,
  { state, where, values = {}, tail = dialect.forUpdate }: TombstoneOptions,
): Promise<Tombstoned[]> {
  const found = await query<Tombstoned>(
    `SELECT id, state, created_at, webhook_url FROM requests WHERE ${where} ${tail}`,
    values,
  );
  if (found.length === 0) return found;
  const { isOneOf, notify } = dialect;
  const ids = found.map(({ id }) => id);
  for (const table of ['parts', 'results', 'result_chunks', 'webhooks']) {
    await query(`DELETE FROM ${table} WHERE ${isOneOf('request_id', 'ids')}`, { ids });
  }
  await query(`UPDATE requests SET state = :state, ${ERASED} WHERE ${isOneOf('id', 'ids')}`, { ids, state });
  if (state === 'expired') {
    const owed = found.filter((request) => isUnfinished(request) && request.webhook_url !== null);
    await insertWebhooks(
      query,
      dialect,
      owed.map(({ id }) => id),
    );
  }
  const held = found.filter((request) => request.state === 'processing').map(({ id }) => id);
  if (held.length > 0) {
    await query(`SELECT ${notify(`'over ' || id`)} FROM requests WHERE ${isOneOf('id', 'held')}`, { held });
  }
  return found;
}

export function isUnfinished({ state }: Pick<RequestRow, 'state'>): boolean {
  return state === 'uploading' || state === 'queued' || state === 'processing';
}

/** Part of the transaction that ends these requests. */
export async function insertWebhooks(
  query: Query,
  { elements }: Dialect,
  requestIds: readonly string[],
): Promise<void> {
  if (requestIds.length === 0) return;
  const webhooks = JSON.stringify(requestIds.map((request) => ({ request, webhook: randomUUID() })));
  await query(
    `INSERT INTO webhooks (id, request_id, created_at, due_at)
     SELECT value ->> 'webhook', value ->> 'request', :now, :now FROM ${elements('webhooks')} AS one`,
    { webhooks },
  );
}
