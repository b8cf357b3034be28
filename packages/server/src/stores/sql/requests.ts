import { randomUUID } from 'node:crypto';
import type { RequestState } from '@undertone/contract';
import {
  type AddedPart,
  type ArrivedUpload,
  type AsynchRequest,
  type Backlog,
  type Claim,
  type ClaimOptions,
  type Completed,
  type CreatedOnce,
  type CreateQuota,
  checkLimits,
  type Expired,
  type Failure,
  type Idempotency,
  type ListOptions,
  type NewRequest,
  type Outcome,
  type Part,
  type RequestStore,
  type RequestWithUsage,
  type RequeueOptions,
  type ResultChunk,
  type ResultForm,
  type StorageLimits,
} from '../contracts.ts';
import { QuotaExceededError, StoreUnavailableError } from '../errors.ts';
import type { Dialect, Query, SqlDatabase, Values } from './database.ts';
import { ACTIVE_KEY } from './keys.ts';
import { checkQuota } from './quota.ts';
import {
  BATCH_ROWS,
  INSERT_REQUEST,
  insertWebhooks,
  isUnfinished,
  newRequestValues,
  type RequestRow,
  TOMBSTONE_MS,
  tombstoneRequests,
  toRequest,
  toTrace,
  toVisibleRequest,
  UNFINISHED,
  VISIBLE,
  type VisibleRow,
} from './request-row.ts';
import { deleteExpiredChunks, deleteOtherChunks, insertChunk, readChunk } from './result-chunks.ts';

/** Only the holder of the lease, and only until the request expires. */
const HELD = `id = :id AND state = 'processing' AND lease = :lease AND expires_at > :now`;
const UPLOADING = `id = :id AND state = 'uploading' AND expires_at > :now`;
/** Before this, even the tombstone is gone. */
const TOMBSTONE_CUTOFF = `:now - ${TOMBSTONE_MS}`;

/** Bytes of all of the owner's requests. */
const OWNER_BYTES = `
  (SELECT CAST(coalesce(sum(stored_bytes), 0) AS bigint) FROM requests AS own
   WHERE own.owner = requests.owner AND stored_bytes > 0)`;

const MAX_LOST_LEASES = 100;

export class SqlRequestStore implements RequestStore {
  readonly #database: SqlDatabase;
  readonly #dialect: Dialect;
  /** Leases of claims that failed here. The database may have made them all the same, and then no worker holds them. */
  #lostLeases: string[] = [];

  constructor(database: SqlDatabase) {
    this.#database = database;
    this.#dialect = database.dialect;
  }

  async create(request: NewRequest, quota: CreateQuota = {}): Promise<AsynchRequest> {
    const created = await this.#database.transaction(async (query) => {
      const exceeded = await checkQuota(query, this.#dialect, request.owner, quota);
      return exceeded ?? (await query<RequestRow>(INSERT_REQUEST, newRequestValues(request)));
    });
    if (created instanceof QuotaExceededError) throw created;
    return toRequest(created[0] as RequestRow, 'uploading', 0);
  }

  async createOnce(
    request: NewRequest,
    idempotency: Idempotency,
    quota: CreateQuota = {},
  ): Promise<CreatedOnce> {
    const mine = { owner: request.owner, key: idempotency.key };
    const created = await this.#database.transaction(async (query) => {
      // One at a time: concurrent calls with one key create one request. The owner before any row, as everywhere: see `addPart`.
      await query(`SELECT ${this.#dialect.lock('CAST(:owner AS text)')}`, { owner: request.owner });
      const [found] = await query<RequestRow & { expired: boolean; running: boolean }>(
        `SELECT *, expires_at <= :now AS expired, lease_until > :now AS running FROM requests
         WHERE owner = :owner AND idempotency_key = :key`,
        mine,
      );
      if (found?.expired) {
        await query('UPDATE requests SET idempotency_key = NULL WHERE id = :id', { id: found.id });
      } else if (found) {
        if (found.idempotency_query !== idempotency.query) return { inUse: 'other_query' as const };
        if (found.state !== 'uploading' || found.lease_until === null) {
          return { request: toRequest(found, found.state as RequestState, found.progress), isNew: false };
        }
        if (found.running) return { inUse: 'still_running' as const };
        const interrupted = { state: 'deleted', where: 'id = :id', values: { id: found.id } } as const;
        await tombstoneRequests(query, this.#dialect, interrupted);
      }
      const exceeded = await checkQuota(query, this.#dialect, request.owner, quota);
      if (exceeded !== null) return exceeded;
      const [row] = await query<RequestRow>(INSERT_REQUEST, newRequestValues(request, idempotency));
      return { request: toRequest(row as RequestRow, 'uploading', 0), isNew: true };
    });
    if (created instanceof QuotaExceededError) throw created;
    return created;
  }

  async renewUpload(id: string, { leaseMs }: { leaseMs: number }): Promise<void> {
    await this.#database.query(
      `UPDATE requests SET lease_until = :now + CAST(:leaseMs AS bigint)
       WHERE id = :id AND state = 'uploading' AND lease_until IS NOT NULL`,
      { id, leaseMs },
    );
  }

  async list(owner: string, { limit, state, after }: ListOptions): Promise<AsynchRequest[]> {
    const within =
      state === 'expired'
        ? `expires_at <= :now AND expires_at > ${TOMBSTONE_CUTOFF}`
        : 'expires_at > :now AND (CAST(:state AS text) IS NULL OR state = :state)';
    const rows = await this.#database.query<VisibleRow>(
      `SELECT ${VISIBLE} FROM requests
       WHERE owner = :owner AND state <> 'deleted' AND ${within}
         AND (created_at, id) < (CAST(:afterTime AS bigint), :afterId)
       ORDER BY created_at DESC, id DESC LIMIT :limit`,
      {
        owner,
        limit,
        state: state ?? null,
        afterTime: after?.createdAt ?? Number.MAX_SAFE_INTEGER,
        afterId: after?.id ?? '',
      },
    );
    return rows.map(toVisibleRequest).filter((request) => request !== null);
  }

  async find(id: string): Promise<AsynchRequest | null> {
    const [row] = await this.#database.query<VisibleRow>(
      `SELECT ${VISIBLE} FROM requests WHERE id = :id AND expires_at > ${TOMBSTONE_CUTOFF}`,
      { id },
    );
    return toVisibleRequest(row);
  }

  async findWithUsage(id: string, number: number): Promise<RequestWithUsage | null> {
    type Row = VisibleRow & {
      request_bytes: number;
      owner_bytes: number;
      owner_limits: string | null;
      has_key: boolean | number;
    };
    const [row] = await this.#database.query<Row>(
      `SELECT ${VISIBLE}, stored_bytes - coalesce(bytes, 0) AS request_bytes,
         ${OWNER_BYTES} - coalesce(bytes, 0) AS owner_bytes,
         (SELECT limits FROM owners WHERE name = requests.owner) AS owner_limits,
         EXISTS (SELECT 1 FROM keys WHERE keys.owner = requests.owner AND ${ACTIVE_KEY}) AS has_key
       FROM requests LEFT JOIN parts ON request_id = id AND number = :number
       WHERE id = :id AND expires_at > ${TOMBSTONE_CUTOFF}`,
      { id, number },
    );
    const request = toVisibleRequest(row);
    if (row === undefined || request === null) return null;
    const { storage = null } = JSON.parse(row.owner_limits ?? '{}');
    const usage = { requestBytes: row.request_bytes, ownerBytes: row.owner_bytes };
    return { request, usage, storageLimit: storage, ownerHasKey: Boolean(row.has_key) };
  }

  async addPart(id: string, part: Part, limits: StorageLimits): Promise<AddedPart> {
    const answer = await this.#storeParts(id, [part], limits, part.number);
    return answer ?? { added: false, why: 'not_uploading', request: await this.find(id) };
  }

  /** In place of the part with this number, or of all parts. Null when the request is not uploading. */
  #storeParts(
    id: string,
    parts: readonly Part[],
    limits: StorageLimits,
    replacedNumber?: number,
  ): Promise<Exclude<AddedPart, { why: 'not_uploading' }> | null> {
    const { lock, forUpdate, elements } = this.#dialect;
    const replaced = replacedNumber === undefined ? '' : 'AND number = :number';
    const values: Values = { id, number: replacedNumber ?? null, parts: JSON.stringify(parts) };
    return this.#database.transaction(async (query) => {
      // One at a time for each owner, whose requests share a limit.
      await query(`SELECT ${lock('owner')} FROM requests WHERE id = :id`, { id });
      const [found] = await query<{ stored: number; used: number; freed: number; blob: string | null }>(
        `SELECT stored_bytes AS stored, ${OWNER_BYTES} AS used,
           (SELECT CAST(coalesce(sum(bytes), 0) AS bigint) FROM parts WHERE request_id = id ${replaced}) AS freed,
           (SELECT min(blob) FROM parts WHERE request_id = id ${replaced}) AS blob
         FROM requests WHERE ${UPLOADING} ${forUpdate}`,
        values,
      );
      if (found === undefined) return null;
      const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
      // The sweep may have counted parts that are not recorded.
      const freed = replacedNumber === undefined ? found.stored : found.freed;
      const usage = { requestBytes: found.stored - freed, ownerBytes: found.used - freed };
      const exceeded = checkLimits(usage, bytes, limits);
      if (exceeded !== null) return exceeded;
      await query(`DELETE FROM parts WHERE request_id = :id ${replaced}`, values);
      await query(
        `INSERT INTO parts (request_id, number, blob, etag, bytes)
         SELECT :id, CAST(value ->> 'number' AS integer), value ->> 'blob', value ->> 'etag',
           CAST(value ->> 'bytes' AS bigint)
         FROM ${elements('parts')} AS part`,
        values,
      );
      const total = usage.requestBytes + bytes;
      await query('UPDATE requests SET stored_bytes = :total WHERE id = :id', { id, total });
      return { added: true, replaced: found.blob };
    });
  }

  async parts(id: string): Promise<Part[]> {
    const rows = await this.#database.query<Part>(
      'SELECT number, blob, etag, bytes FROM parts WHERE request_id = :id ORDER BY number',
      { id },
    );
    return rows.map((row) => ({ ...row }));
  }

  async complete(
    id: string,
    etags: ReadonlyMap<number, string>,
    arrived?: { parts: readonly Part[]; limits: StorageLimits },
    maxQueued = 0,
  ): Promise<Completed> {
    const stored = arrived && (await this.#storeParts(id, arrived.parts, arrived.limits));
    if (stored?.added === false) return stored;
    const row = await this.#database.transaction(async (query) => {
      const [found] = await query<RequestRow>('SELECT owner FROM requests WHERE id = :id', { id });
      const quota = { queued: maxQueued };
      const exceeded = found && (await checkQuota(query, this.#dialect, found.owner, quota));
      return exceeded ?? (await this.#queue(query, id, etags));
    });
    if (row instanceof QuotaExceededError) throw row;
    if (row !== undefined) return { queued: true, request: toRequest(row, 'queued', 0), parts: [] };
    const request = await this.find(id);
    return { queued: false, request, parts: request?.state === 'uploading' ? await this.parts(id) : [] };
  }

  async #queue(
    query: Query,
    id: string,
    etags: ReadonlyMap<number, string>,
  ): Promise<RequestRow | undefined> {
    const { elements, notify } = this.#dialect;
    const [row] = await query<RequestRow>(
      `UPDATE requests SET state = 'queued', progress = 0, queued_at = :now, lease_until = NULL, turn = ${this.#nextTurn()}
       WHERE ${UPLOADING}
         AND part_count = :count
         AND part_count = (SELECT count(*) FROM parts WHERE request_id = :id)
         AND part_count = (
           SELECT count(*) FROM ${elements('named')} AS named
           JOIN parts ON request_id = :id AND number = CAST(value ->> 0 AS integer)
             AND lower(etag) = lower(value ->> 1))
       RETURNING *, ${notify(`'queued'`)} AS notified`,
      { id, count: etags.size, named: JSON.stringify([...etags]) },
    );
    return row;
  }

  /**
   * Owners take turns. The first request of an owner who has none waiting joins the turn that is being served, each further
   * one the turn after it: however many requests an owner queues at once, another owner's first waits for one of them.
   */
  #nextTurn(): string {
    const { waitingRequests } = this.#dialect;
    const waiting = `state IN ('queued', 'processing')`;
    const own = `SELECT max(turn) + 1 FROM requests AS own WHERE own.owner = requests.owner AND own.${waiting}`;
    const served = `SELECT turn FROM ${waitingRequests} WHERE ${waiting} AND state = 'queued' AND not_before <= :now
      ORDER BY turn, queued_at, id LIMIT 1`;
    const last = `SELECT max(turn) FROM ${waitingRequests} WHERE ${waiting}`;
    return `${this.#dialect.greatest(`coalesce((${own}), 0)`, `coalesce((${served}), (${last}), 0)`)}`;
  }

  async claim({ leaseMs, running, exceptOwners = [] }: ClaimOptions): Promise<Claim | null> {
    const lease = randomUUID();
    const lost = this.#lostLeases;
    const { isOneOf, skipLocked, waitingRequests } = this.#dialect;
    // While the database was unavailable no lease could be renewed: their holders have one lease's time to do so. If they were
    // stopped meanwhile, that is no fault of the recording: only a lease that was taken or renewed since then counts as a failed
    // attempt. (A database that hung executes the last renewal when it goes on.)
    const { availableMs } = this.#database;
    const takeOver = availableMs > leaseMs;
    const withinMs = Math.min(Math.round(availableMs), Number.MAX_SAFE_INTEGER) - leaseMs;
    try {
      const [row] = await this.#database.query<RequestRow & { waited_ms: number }>(
        `UPDATE requests SET state = 'processing', lease = :lease, progress = 0,
           lease_until = :now + CAST(:leaseMs AS bigint),
           failed_attempts = failed_attempts
             + CASE WHEN state = 'processing' AND NOT ${isOneOf('lease', 'lost')}
               AND lease_until > :now - CAST(:withinMs AS bigint) THEN 1 ELSE 0 END
         WHERE id = (
           SELECT id FROM ${waitingRequests}
           WHERE state IN ('queued', 'processing') AND expires_at > :now AND NOT ${isOneOf('owner', 'exceptOwners')}
             AND ((state = 'queued' AND not_before <= :now) OR ${isOneOf('lease', 'lost')}
               OR (:takeOver AND lease_until < :now AND NOT ${isOneOf('lease', 'running')}))
           ORDER BY turn, queued_at, id LIMIT 1 ${skipLocked('requests')})
         RETURNING *, :now - queued_at AS waited_ms`,
        { lease, lost, running, exceptOwners, leaseMs, takeOver, withinMs },
      );
      if (row !== undefined) {
        const { failed_attempts: failedAttempts, postponed, waited_ms: waitedMs } = row;
        const request = toRequest(row, 'processing', 0);
        return { request, lease, failedAttempts, postponed, waitedMs, trace: toTrace(row) };
      }
      this.#lostLeases = this.#lostLeases.filter((one) => !lost.includes(one));
      return null;
    } catch (error) {
      if (error instanceof StoreUnavailableError) {
        this.#lostLeases = [...this.#lostLeases, lease].slice(-MAX_LOST_LEASES);
      }
      throw error;
    }
  }

  renew(id: string, lease: string, options: { leaseMs: number; progress: number }): Promise<boolean> {
    return this.#updateHeld('progress = :progress, lease_until = :now + CAST(:leaseMs AS bigint)', {
      id,
      lease,
      ...options,
    });
  }

  requeue(id: string, lease: string, { countAttempt, afterMs = 0 }: RequeueOptions): Promise<boolean> {
    return this.#updateHeld(
      `state = 'queued', lease = NULL, lease_until = NULL, progress = 0, failed_attempts = failed_attempts + :failed,
       postponed = postponed + :postponed, not_before = :now + CAST(:afterMs AS bigint)`,
      { id, lease, failed: countAttempt ? 1 : 0, postponed: countAttempt || afterMs === 0 ? 0 : 1, afterMs },
      this.#dialect.notify(`'queued'`),
    );
  }

  async #updateHeld(changes: string, values: Values, returning = 'id'): Promise<boolean> {
    const update = `UPDATE requests SET ${changes} WHERE ${HELD} RETURNING ${returning}`;
    return (await this.#database.query(update, values)).length > 0;
  }

  addResultChunk(id: string, lease: string, chunk: ResultChunk): Promise<boolean> {
    return insertChunk(this.#database.query, HELD, id, lease, chunk);
  }

  resultChunk(id: string, form: ResultForm, number: number): Promise<string | null> {
    return readChunk(this.#database.query, id, form, number);
  }

  finish(id: string, lease: string, outcome: Outcome, durationSeconds?: number): Promise<boolean> {
    const result = 'result' in outcome ? outcome.result : null;
    const failure = 'failure' in outcome ? JSON.stringify(outcome.failure) : null;
    const chunks = 'chunked' in outcome ? lease : null;
    const state = failure === null ? 'completed' : 'failed';
    return this.#database.transaction(async (query) => {
      const [request] = await query<Pick<RequestRow, 'webhook_url'>>(
        `UPDATE requests SET state = :state, progress = 1, duration_seconds = :seconds, queued_at = NULL, lease = NULL,
           lease_until = NULL
         WHERE ${HELD} RETURNING webhook_url`,
        { id, lease, state, seconds: durationSeconds ?? null },
      );
      if (request === undefined) return false;
      await query(
        'INSERT INTO results (request_id, result, failure, chunks) VALUES (:id, :result, :failure, :chunks)',
        { id, result, failure, chunks },
      );
      await deleteOtherChunks(query, id, lease);
      if (request.webhook_url !== null) await insertWebhooks(query, this.#dialect, [id]);
      return true;
    });
  }

  async outcome(id: string): Promise<Outcome | null> {
    const [row] = await this.#database.query<{
      result: string | null;
      failure: string | null;
      chunks: string | null;
    }>(
      `SELECT result, failure, chunks FROM results JOIN requests ON id = request_id
       WHERE request_id = :id AND expires_at > :now`,
      { id },
    );
    if (row === undefined) return null;
    if (row.chunks !== null) return { chunked: true };
    if (row.result !== null) return { result: row.result };
    return { failure: JSON.parse(row.failure ?? '') as Failure };
  }

  async deleteParts(id: string): Promise<void> {
    await this.#database.transaction(async (query) => {
      // The request first, as everywhere: two transactions that lock in different orders would be a deadlock.
      await query('UPDATE requests SET stored_bytes = 0 WHERE id = :id', { id });
      await query('DELETE FROM parts WHERE request_id = :id', { id });
    });
  }

  delete(id: string, owner: string): Promise<'deleted' | 'already' | 'unknown'> {
    return this.#database.transaction(async (query) => {
      const [found] = await query<Pick<RequestRow, 'state'>>(
        `SELECT state FROM requests WHERE id = :id AND owner = :owner AND expires_at > ${TOMBSTONE_CUTOFF} ${this.#dialect.forUpdate}`,
        { id, owner },
      );
      if (found === undefined) return 'unknown';
      if (found.state === 'deleted') return 'already';
      await tombstoneRequests(query, this.#dialect, { state: 'deleted', where: 'id = :id', values: { id } });
      return 'deleted';
    });
  }

  async expire({ limit = BATCH_ROWS }: { limit?: number } = {}): Promise<Expired> {
    const { skipLocked, isOneOf, afterExpire } = this.#dialect;
    // Not ordered, which would sort all of them for every batch. Another process may be sweeping: it has the rows it locked.
    const tail = `LIMIT :limit ${skipLocked('requests')}`;
    const tombstone = (state: 'expired' | 'deleted', where: string) =>
      this.#database.transaction((query) =>
        tombstoneRequests(query, this.#dialect, { state, where, values: { limit }, tail }),
      );
    // Every state is named, so that the index on state and expiry is used.
    const past = `state IN ('uploading', 'queued', 'processing', 'completed', 'failed') AND expires_at <= :now`;
    const chunks = await this.#database.transaction((query) =>
      deleteExpiredChunks(query, this.#dialect, past),
    );
    if (chunks) return { more: true, requests: 0, unprocessed: 0 };
    const expired = await tombstone('expired', past);
    const interrupted = await tombstone('deleted', `state = 'uploading' AND lease_until < :now`);
    const removed = await this.#database.transaction(async (query) => {
      const rows = await query<{ id: string }>(
        `SELECT id FROM requests WHERE state IN ('expired', 'deleted') AND expires_at <= ${TOMBSTONE_CUTOFF} ${tail}`,
        { limit },
      );
      const ids = rows.map(({ id }) => id);
      await query(`DELETE FROM requests WHERE ${isOneOf('id', 'ids')}`, { ids });
      return ids.length;
    });
    const more = Math.max(expired.length, interrupted.length, removed) >= limit || (await this.#shrink());
    if (!more) await this.#database.query(afterExpire);
    const unprocessed = expired.filter(
      ({ state }) => state !== 'uploading' && isUnfinished({ state }),
    ).length;
    return { more, requests: expired.length, unprocessed };
  }

  /** One step of it. False: nothing was to be done. */
  async #shrink(): Promise<boolean> {
    const { shrink } = this.#dialect;
    if (shrink === undefined) return false;
    const [row] = await this.#database.query<{ due: number }>(shrink.isDue);
    if (!row?.due) return false;
    await this.#database.query(shrink.step);
    return true;
  }

  async needingBlobs(ids: readonly string[]): Promise<string[]> {
    const rows = await this.#database.query<{ id: string }>(
      `SELECT id FROM requests WHERE ${this.#dialect.isOneOf('id', 'ids')} AND expires_at > :now AND ${UNFINISHED}`,
      { ids },
    );
    return rows.map(({ id }) => id);
  }

  async noteArrived(bytes: ReadonlyMap<string, number>): Promise<ArrivedUpload[]> {
    const { isOneOf, elements, skipLocked } = this.#dialect;
    // A whole recording in one call, which has a lease, passes our own checks.
    const uploading = `${isOneOf('requests.id', 'ids')} AND state = 'uploading' AND lease_until IS NULL AND expires_at > :now`;
    type Row = { id: string; owner: string; bytes: number; owner_bytes: number; owner_limits: string | null };
    const rows = await this.#database.transaction(async (query) => {
      const lock = `SELECT id FROM requests WHERE ${uploading} ${skipLocked('requests')}`;
      const ids = (await query<{ id: string }>(lock, { ids: [...bytes.keys()] })).map(({ id }) => id);
      await query(
        `UPDATE requests SET stored_bytes = arrived.bytes
         FROM (SELECT value ->> 0 AS id, CAST(value ->> 1 AS bigint) AS bytes FROM ${elements('bytes')} AS one) AS arrived
         WHERE requests.id = arrived.id AND ${uploading} AND stored_bytes <> arrived.bytes`,
        { ids, bytes: JSON.stringify([...bytes]) },
      );
      return query<Row>(
        `SELECT id, owner, stored_bytes AS bytes, ${OWNER_BYTES} AS owner_bytes,
           (SELECT limits FROM owners WHERE name = requests.owner) AS owner_limits
         FROM requests WHERE ${uploading} ORDER BY created_at DESC, id`,
        { ids },
      );
    });
    return rows.map(({ owner_bytes: ownerBytes, owner_limits, ...upload }) => {
      const { storage: storageLimit = null } = JSON.parse(owner_limits ?? '{}');
      return { ...upload, ownerBytes, storageLimit };
    });
  }

  async countByState(): Promise<Partial<Record<RequestState, number>>> {
    const rows = await this.#database.query<{ state: RequestState; count: number }>(
      `SELECT state, count(*) AS count FROM requests WHERE state <> 'deleted' GROUP BY state`,
    );
    return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
  }

  async backlog(): Promise<Backlog> {
    const [row] = await this.#database.query<{ abandoned: number; oldest: number }>(
      `SELECT count(lease) AS abandoned, coalesce(:now - min(created_at), 0) AS oldest
       FROM ${this.#dialect.waitingRequests}
       WHERE state IN ('queued', 'processing') AND expires_at > :now AND (state = 'queued' OR lease_until < :now)`,
    );
    return { abandoned: row?.abandoned ?? 0, oldestMs: row?.oldest ?? 0 };
  }

  async checkWritable(): Promise<void> {
    await this.#database.query(
      'INSERT INTO write_check (id, at) VALUES (1, :now) ON CONFLICT (id) DO UPDATE SET at = excluded.at',
    );
  }
}
