import { randomUUID } from 'node:crypto';
import { ASYNCH_LIMITS, type RequestState } from '@undertone/contract';
import type {
  AddedPart,
  AsynchRequest,
  Claim,
  CreatedOnce,
  Failure,
  Idempotency,
  ListOptions,
  NewRequest,
  Outcome,
  Part,
  RequestStore,
  StorageLimits,
} from '../request-store.ts';
import { asRequest, asSeen, ERASED, NEW_COLUMNS, newValues, type RequestRow } from '../sql/request-row.ts';
import { TOMBSTONE_MS } from '../sql/tombstones.ts';
import { StoreUnavailableError } from '../unavailable.ts';
import type { PostgresDatabase, Query, Values } from './database.ts';

/** Where processes tell each other what happened: `queued`, or `over ID`. */
export const CHANNEL = 'undertone';

/** Only the holder of this very lease, and only until the request expires. */
const HELD = `id = :id AND state = 'processing' AND lease = :lease AND expires_at > :now`;

const USED_BY_OWNER = `
  (SELECT coalesce(sum(stored_bytes), 0)::bigint FROM requests AS own
   WHERE own.owner = requests.owner AND stored_bytes > 0)`;

const INSERT = `
  INSERT INTO requests (${NEW_COLUMNS})
  VALUES (:id, :owner, :uploadId, :model, :intervalSeconds, :channels, :label, :webhookUrl, :partCount,
    :key, :query, 'uploading', :now + :uploadLeaseMs::bigint, :now, :now + :retentionMs) RETURNING *`;

export class PostgresRequestStore implements RequestStore {
  readonly #database: PostgresDatabase;
  /** Of claims that failed: the database may have made them all the same, and then nobody works under them. */
  #lostLeases: string[] = [];

  constructor(database: PostgresDatabase) {
    this.#database = database;
  }

  async create(request: NewRequest): Promise<AsynchRequest> {
    const row = await this.#database.get<RequestRow>(INSERT, newRow(request));
    return asRequest(row as RequestRow, 'uploading', 0);
  }

  createOnce(request: NewRequest, idempotency: Idempotency): Promise<CreatedOnce> {
    const { owner } = request;
    const { key, query: sameQuery } = idempotency;
    return this.#database.transaction(async (query): Promise<CreatedOnce> => {
      // One at a time: two calls with one key make one request.
      await query('SELECT pg_advisory_xact_lock(hashtextextended(:owner::text || :key::text, 0))', {
        owner,
        key,
      });
      const mine = 'owner = :owner AND idempotency_key = :key';
      const {
        rows: [found],
      } = await query<RequestRow & { living: boolean; running: boolean }>(
        `SELECT *, expires_at > :now AS living, lease_until > :now AS running FROM requests WHERE ${mine}`,
        { owner, key },
      );
      if (found?.living) {
        if (found.idempotency_query !== sameQuery) return { inUse: 'other_query' };
        if (found.state !== 'uploading' || found.lease_until === null) {
          const { state, progress } = found;
          return { request: asRequest(found, state as RequestState, progress), isNew: false };
        }
        if (found.running) return { inUse: 'still_running' };
        await endRequests(query, 'deleted', 'id = :id', { id: found.id });
      } else if (found !== undefined) {
        await query(`UPDATE requests SET idempotency_key = NULL WHERE ${mine}`, { owner, key });
      }
      const { rows } = await query<RequestRow>(INSERT, newRow(request, idempotency));
      return { request: asRequest(rows[0] as RequestRow, 'uploading', 0), isNew: true };
    });
  }

  async renewUpload(id: string, { leaseMs }: { leaseMs: number }): Promise<void> {
    await this.#database.run(
      `UPDATE requests SET lease_until = :now + :leaseMs::bigint
       WHERE id = :id AND state = 'uploading' AND lease_until IS NOT NULL`,
      { id, leaseMs },
    );
  }

  async list(owner: string, { limit, state, after }: ListOptions): Promise<AsynchRequest[]> {
    const expired = state === 'expired';
    const within = expired
      ? `expires_at <= :now AND expires_at > :now - ${TOMBSTONE_MS}`
      : 'expires_at > :now AND (:state::text IS NULL OR state = :state)';
    const rows = await this.#database.all<RequestRow & { arrived: number }>(
      `SELECT *, (SELECT count(*) FROM parts WHERE request_id = requests.id AND state = 'uploading') AS arrived
       FROM requests WHERE owner = :owner AND state <> 'deleted' AND ${within}
         AND (created_at, id) < (:afterTime::bigint, :afterId)
       ORDER BY created_at DESC, id DESC LIMIT :limit`,
      {
        owner,
        limit,
        ...(!expired && { state: state ?? null }),
        afterTime: after?.createdAt ?? Number.MAX_SAFE_INTEGER,
        afterId: after?.id ?? '',
      },
    );
    return rows.map((row) => asSeen(row, expired));
  }

  async find(id: string): Promise<AsynchRequest | null> {
    const row = await this.#database.get<RequestRow & { arrived: number; expired: boolean }>(
      `SELECT *, expires_at <= :now AS expired,
         (SELECT count(*) FROM parts WHERE request_id = :id AND state = 'uploading') AS arrived
       FROM requests WHERE id = :id AND expires_at > :now - ${TOMBSTONE_MS}`,
      { id },
    );
    return row === undefined || row.state === 'deleted' ? null : asSeen(row, row.expired);
  }

  async usage(id: string, number: number): Promise<{ bytesOfOtherParts: number; bytesOfOwner: number }> {
    const usage = await this.#database.get<{ bytesOfOtherParts: number; bytesOfOwner: number }>(
      `SELECT stored_bytes - coalesce(bytes, 0) AS "bytesOfOtherParts",
         ${USED_BY_OWNER} - coalesce(bytes, 0) AS "bytesOfOwner"
       FROM requests LEFT JOIN parts ON request_id = id AND number = :number WHERE id = :id`,
      { id, number },
    );
    return usage ?? { bytesOfOtherParts: 0, bytesOfOwner: 0 };
  }

  addPart(id: string, part: Part, limits: StorageLimits): Promise<AddedPart> {
    return this.#storeParts(id, [part], limits, 'these');
  }

  setParts(id: string, parts: readonly Part[], limits: StorageLimits): Promise<AddedPart> {
    return this.#storeParts(id, parts, limits, 'all');
  }

  /** In place of those with the same numbers, or of all there are. */
  #storeParts(
    id: string,
    parts: readonly Part[],
    limits: StorageLimits,
    replacing: 'these' | 'all',
  ): Promise<AddedPart> {
    const numbers = parts.map(({ number }) => number);
    return this.#database.transaction(async (query): Promise<AddedPart> => {
      // One at a time for each owner, whose requests share a limit.
      await query(`SELECT pg_advisory_xact_lock(hashtextextended(owner, 0)) FROM requests WHERE id = :id`, {
        id,
      });
      const found = await query<{
        stored_bytes: number;
        used: number;
        freed: number;
        replaced: string | null;
      }>(
        `SELECT stored_bytes, ${USED_BY_OWNER} AS used, freed.bytes AS freed, freed.blob AS replaced
         FROM requests, LATERAL (
           SELECT coalesce(sum(bytes), 0)::bigint AS bytes, min(blob) AS blob FROM parts
           WHERE request_id = id AND (:all OR number = ANY(:numbers::int[]))) AS freed
         WHERE id = :id AND state = 'uploading' AND expires_at > :now FOR UPDATE OF requests`,
        { id, numbers, all: replacing === 'all' },
      );
      const request = found.rows[0];
      if (request === undefined) return { added: false, why: 'not_uploading' };
      const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
      const total = request.stored_bytes - request.freed + bytes;
      const usedBytes = request.used - request.freed;
      if (total > limits.maxRequestBytes) return { added: false, why: 'file_too_large' };
      if (usedBytes + bytes > limits.maxOwnerBytes) return { added: false, why: 'storage_limit', usedBytes };
      if (replacing === 'all') await query('DELETE FROM parts WHERE request_id = :id', { id });
      await query(
        `INSERT INTO parts SELECT :id, number, blob, etag, bytes
         FROM json_to_recordset(:parts) AS part (number int, blob text, etag text, bytes bigint)
         ON CONFLICT (request_id, number)
         DO UPDATE SET blob = excluded.blob, etag = excluded.etag, bytes = excluded.bytes`,
        { id, parts: JSON.stringify(parts) },
      );
      await query('UPDATE requests SET stored_bytes = :total WHERE id = :id', { id, total });
      return { added: true, replaced: replacing === 'all' ? null : request.replaced };
    });
  }

  parts(id: string): Promise<Part[]> {
    return this.#database.all<Part>(
      'SELECT number, blob, etag, bytes FROM parts WHERE request_id = :id ORDER BY number',
      { id },
    );
  }

  complete(id: string, etags: ReadonlyMap<number, string>): Promise<boolean> {
    return this.#changes(
      `WITH done AS (
         UPDATE requests SET state = 'queued', progress = 0, queued_at = :now, lease_until = NULL
         WHERE id = :id AND state = 'uploading' AND expires_at > :now
           AND part_count = :count
           AND part_count = (SELECT count(*) FROM parts WHERE request_id = :id)
           AND part_count = (
             SELECT count(*) FROM json_array_elements(:named) AS named
             JOIN parts ON request_id = :id AND number = (named ->> 0)::int AND lower(etag) = lower(named ->> 1))
         RETURNING id)
       SELECT pg_notify('${CHANNEL}', 'queued') FROM done`,
      { id, count: etags.size, named: JSON.stringify([...etags]) },
    );
  }

  async claim({ leaseMs, running }: { leaseMs: number; running: readonly string[] }): Promise<Claim | null> {
    const lease = randomUUID();
    const lost = this.#lostLeases;
    try {
      const row = await this.#database.get<RequestRow>(
        `UPDATE requests SET state = 'processing', lease = :lease, lease_until = :now + :leaseMs, progress = 0,
           failed_attempts = failed_attempts + (state = 'processing' AND lease <> ALL(:lost::text[]))::int
         WHERE id = (
           SELECT id FROM requests
           WHERE state IN ('queued', 'processing') AND expires_at > :now
             AND (state = 'queued' OR lease = ANY(:lost::text[])
               OR (:takeOver AND lease_until < :now AND lease <> ALL(:running::text[])))
           ORDER BY queued_at, id LIMIT 1 FOR UPDATE SKIP LOCKED)
         RETURNING *`,
        // While the database was away nobody could renew: those that live have the length of a lease to do so.
        { lease, lost, running, leaseMs, takeOver: this.#database.availableFor > leaseMs },
      );
      if (row !== undefined) {
        return { request: asRequest(row, 'processing', 0), lease, failedAttempts: row.failed_attempts };
      }
      this.#lostLeases = this.#lostLeases.filter((one) => !lost.includes(one));
      return null;
    } catch (error) {
      if (error instanceof StoreUnavailableError) this.#lostLeases = [...this.#lostLeases.slice(-99), lease];
      throw error;
    }
  }

  renew(id: string, lease: string, options: { leaseMs: number; progress: number }): Promise<boolean> {
    return this.#changes(
      `UPDATE requests SET progress = :progress, lease_until = :now + :leaseMs WHERE ${HELD}`,
      { id, lease, ...options },
    );
  }

  /** It keeps its place in the queue. */
  requeue(id: string, lease: string, { countAttempt }: { countAttempt: boolean }): Promise<boolean> {
    return this.#changes(
      `WITH done AS (
         UPDATE requests SET state = 'queued', lease = NULL, lease_until = NULL, progress = 0,
           failed_attempts = failed_attempts + :failed
         WHERE ${HELD} RETURNING id)
       SELECT pg_notify('${CHANNEL}', 'queued') FROM done`,
      { id, lease, failed: countAttempt ? 1 : 0 },
    );
  }

  finish(id: string, lease: string, outcome: Outcome, durationSeconds?: number): Promise<boolean> {
    const result = 'result' in outcome ? outcome.result : null;
    const failure = 'failure' in outcome ? JSON.stringify(outcome.failure) : null;
    return this.#changes(
      `WITH done AS (
         UPDATE requests SET state = :state, progress = 1, duration_seconds = :seconds, queued_at = NULL, lease = NULL,
           lease_until = NULL
         WHERE ${HELD} RETURNING id, webhook_url),
       told AS (
         INSERT INTO webhooks (id, request_id, created_at, due_at)
         SELECT :webhook, id, :now, :now FROM done WHERE webhook_url IS NOT NULL)
       INSERT INTO results SELECT id, :result, :failure FROM done`,
      {
        id,
        lease,
        result,
        failure,
        state: result === null ? 'failed' : 'completed',
        seconds: durationSeconds ?? null,
        webhook: randomUUID(),
      },
    );
  }

  async outcome(id: string): Promise<Outcome | null> {
    const row = await this.#database.get<{ result: string | null; failure: string | null }>(
      `SELECT result, failure FROM results JOIN requests ON id = request_id
       WHERE request_id = :id AND expires_at > :now`,
      { id },
    );
    if (row === undefined) return null;
    if (row.result !== null) return { result: row.result };
    return { failure: JSON.parse(row.failure ?? '') as Failure };
  }

  async deleteParts(id: string): Promise<void> {
    await this.#database.run(
      `WITH gone AS (DELETE FROM parts WHERE request_id = :id)
       UPDATE requests SET stored_bytes = 0 WHERE id = :id AND stored_bytes > 0`,
      { id },
    );
  }

  delete(id: string, owner: string): Promise<'deleted' | 'already' | 'unknown'> {
    return this.#database.transaction(async (query) => {
      const found = await query<Pick<RequestRow, 'state'>>(
        `SELECT state FROM requests
         WHERE id = :id AND owner = :owner AND expires_at > :now - ${TOMBSTONE_MS} FOR UPDATE`,
        { id, owner },
      );
      if (found.rows[0] === undefined) return 'unknown';
      if (found.rows[0].state === 'deleted') return 'already';
      await endRequests(query, 'deleted', 'id = :id', { id });
      return 'deleted';
    });
  }

  async expire(): Promise<void> {
    await this.#database.transaction(async (query) => {
      const alive = `state IN ('uploading', 'queued', 'processing', 'completed', 'failed')`;
      await endRequests(query, 'expired', `${alive} AND expires_at <= :now`, {});
      await endRequests(query, 'deleted', `state = 'uploading' AND lease_until < :now`, {});
      await query(
        `DELETE FROM requests WHERE state IN ('expired', 'deleted') AND expires_at <= :now - ${TOMBSTONE_MS}`,
      );
      // After a minute a bucket is full again, and then it need not be there.
      await query('DELETE FROM rate_limits WHERE at < :now - 120000');
    });
  }

  async needingBlobs(ids: readonly string[]): Promise<string[]> {
    const rows = await this.#database.all<{ id: string }>(
      `SELECT id FROM requests
       WHERE id = ANY(:ids) AND expires_at > :now AND state IN ('uploading', 'queued', 'processing')`,
      { ids },
    );
    return rows.map(({ id }) => id);
  }

  async countByState(): Promise<Partial<Record<RequestState, number>>> {
    const rows = await this.#database.all<{ state: RequestState; count: number }>(
      `SELECT state, count(*) AS count FROM requests WHERE state <> 'deleted' GROUP BY state`,
    );
    return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
  }

  async checkWritable(): Promise<void> {
    await this.#database.run(
      'INSERT INTO write_check VALUES (1, :now) ON CONFLICT (id) DO UPDATE SET at = excluded.at',
    );
  }

  async #changes(sql: string, values: Values): Promise<boolean> {
    return (await this.#database.run(sql, values)) > 0;
  }
}

/** Part of a transaction: erases requests down to their id, owner and times, and tells whoever works on them. */
export async function endRequests(
  query: Query,
  state: 'expired' | 'deleted',
  where: string,
  values: Values,
): Promise<void> {
  await query(
    `WITH due AS (SELECT id, state FROM requests WHERE ${where} ORDER BY id FOR UPDATE),
       no_parts AS (DELETE FROM parts USING due WHERE request_id = due.id),
       no_results AS (DELETE FROM results USING due WHERE request_id = due.id),
       no_webhooks AS (DELETE FROM webhooks USING due WHERE request_id = due.id),
       ended AS (UPDATE requests SET state = '${state}', ${ERASED} FROM due WHERE requests.id = due.id)
     SELECT pg_notify('${CHANNEL}', 'over ' || id) FROM due WHERE state = 'processing'`,
    values,
  );
}

function newRow(request: NewRequest, idempotency?: Idempotency): Values {
  return {
    ...newValues(request, idempotency),
    uploadLeaseMs: request.uploadLeaseMs ?? null,
    retentionMs: ASYNCH_LIMITS.retentionSeconds * 1000,
  };
}
