import type { ChannelMode, RequestState } from '@undertone/contract';
import type { AsynchRequest, NewRequest } from '../request-store.ts';

/** A request as both databases keep it. */
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
  lease_until: number | null;
  idempotency_query: string | null;
  created_at: number;
  expires_at: number;
}

/** What a new row is made of, but for its times. */
export const NEW_COLUMNS = `id, owner, upload_id, model, interval_seconds, channels, label, webhook_url, part_count,
  idempotency_key, idempotency_query, state, lease_until, created_at, expires_at`;

export function newValues(request: NewRequest, idempotency?: { key: string; query: string }) {
  const { id, owner, uploadId, model, intervalSeconds, partCount } = request;
  const { channels = 'mix', label = null, webhookUrl = null } = request;
  const { key = null, query = null } = idempotency ?? {};
  return { id, owner, uploadId, model, intervalSeconds, channels, label, webhookUrl, partCount, key, query };
}

/** What is left of a request that is over: its id, owner and times. */
export const ERASED = `upload_id = '', model = '', interval_seconds = 0, channels = 'mix', label = NULL, webhook_url = NULL,
  part_count = 0, progress = 0, duration_seconds = NULL, idempotency_key = NULL, idempotency_query = NULL,
  queued_at = NULL, lease = NULL, lease_until = NULL, failed_attempts = 0, stored_bytes = 0`;

export function asRequest(row: RequestRow, state: RequestState, progress: number): AsynchRequest {
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

/** With the number of parts that have arrived: the progress of an upload. */
export function asSeen(row: RequestRow & { arrived: number }, expired: boolean): AsynchRequest {
  const state = expired ? 'expired' : (row.state as RequestState);
  return asRequest(row, state, state === 'uploading' ? row.arrived / row.part_count : row.progress);
}
