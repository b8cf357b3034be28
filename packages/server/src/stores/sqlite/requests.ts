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
import { asRequest, asSeen, NEW_COLUMNS, newValues, type RequestRow } from '../sql/request-row.ts';
import { leaveTombstones, TOMBSTONE_MS } from '../sql/tombstones.ts';
import type { RetryingDatabase, Values } from './retrying-database.ts';

/** Only the holder of this very lease, and only until the request expires. */
const HELD = `id = :id AND state = 'processing' AND lease = :lease AND expires_at > :now`;

/** Bytes of everything but the part `:number` of the request `:id`. */
const USAGE = `
  SELECT requests.stored_bytes - coalesce(bytes, 0) AS ofOtherParts, blob AS replaced,
    (SELECT sum(stored_bytes) FROM requests AS own WHERE own.owner = requests.owner AND stored_bytes > 0)
      - coalesce(bytes, 0) AS ofOwner
  FROM requests LEFT JOIN parts ON request_id = id AND number = :number`;

const INSERT = `
  INSERT INTO requests (${NEW_COLUMNS})
  VALUES (:id, :owner, :uploadId, :model, :intervalSeconds, :channels, :label, :webhookUrl, :partCount,
    :key, :query, 'uploading', :leaseUntil, :now, :expiresAt) RETURNING *`;

interface Usage {
  ofOtherParts: number;
  ofOwner: number | null;
  replaced: string | null;
}

export class SqliteRequestStore implements RequestStore {
  readonly #database: RetryingDatabase;
  readonly #now: () => number;

  constructor(database: RetryingDatabase, now: () => number = Date.now) {
    this.#database = database;
    this.#now = now;
  }

  async create(request: NewRequest): Promise<AsynchRequest> {
    const row = await this.#database.get<RequestRow>(INSERT, this.#newRow(request));
    return asRequest(row as RequestRow, 'uploading', 0);
  }

  createOnce(request: NewRequest, idempotency: Idempotency): Promise<CreatedOnce> {
    const { owner } = request;
    const { key, query } = idempotency;
    return this.#database.transaction((prepare): CreatedOnce => {
      const now = this.#now();
      const mine = 'owner = :owner AND idempotency_key = :key';
      const found = prepare(`SELECT * FROM requests WHERE ${mine}`).get({ owner, key }) as
        | RequestRow
        | undefined;
      if (found !== undefined && found.expires_at > now) {
        if (found.idempotency_query !== query) return { inUse: 'other_query' };
        const lease = found.state === 'uploading' ? found.lease_until : null;
        if (lease === null)
          return { request: asRequest(found, stateOf(found), found.progress), isNew: false };
        if (lease > now) return { inUse: 'still_running' };
        leaveTombstones(prepare, 'deleted', 'id = :id', { id: found.id });
      } else if (found !== undefined) {
        prepare(`UPDATE requests SET idempotency_key = NULL WHERE ${mine}`).run({ owner, key });
      }
      const [row] = prepare(INSERT).all(this.#newRow(request, idempotency)) as unknown as RequestRow[];
      return { request: asRequest(row as RequestRow, 'uploading', 0), isNew: true };
    });
  }

  async renewUpload(id: string, { leaseMs }: { leaseMs: number }): Promise<void> {
    await this.#database.run(
      `UPDATE requests SET lease_until = :until WHERE id = :id AND state = 'uploading' AND lease_until IS NOT NULL`,
      { id, until: this.#now() + leaseMs },
    );
  }

  async list(owner: string, { limit, state, after }: ListOptions): Promise<AsynchRequest[]> {
    const now = this.#now();
    const expired = state === 'expired';
    const rows = await this.#database.all<RequestRow & { arrived: number }>(
      `SELECT *, (SELECT count(*) FROM parts WHERE request_id = id) AS arrived FROM requests
       WHERE owner = :owner AND state <> 'deleted' AND expires_at > :from AND expires_at <= :to
         AND (:state IS NULL OR state = :state)
         AND (created_at, id) < (:afterTime, :afterId)
       ORDER BY created_at DESC, id DESC LIMIT :limit`,
      {
        owner,
        limit,
        from: expired ? now - TOMBSTONE_MS : now,
        to: expired ? now : Number.MAX_SAFE_INTEGER,
        state: expired ? null : (state ?? null),
        afterTime: after?.createdAt ?? Number.MAX_SAFE_INTEGER,
        afterId: after?.id ?? '',
      },
    );
    return rows.map((row) => asSeen(row, expired));
  }

  async find(id: string): Promise<AsynchRequest | null> {
    const now = this.#now();
    const row = await this.#database.get<RequestRow & { arrived: number }>(
      `SELECT *, (SELECT count(*) FROM parts WHERE request_id = id) AS arrived FROM requests
       WHERE id = :id AND expires_at > :buried`,
      { id, buried: now - TOMBSTONE_MS },
    );
    return row === undefined || row.state === 'deleted' ? null : asSeen(row, row.expires_at <= now);
  }

  async usage(id: string, number: number): Promise<{ bytesOfOtherParts: number; bytesOfOwner: number }> {
    const usage = await this.#database.get<Usage>(`${USAGE} WHERE id = :id`, { id, number });
    return { bytesOfOtherParts: usage?.ofOtherParts ?? 0, bytesOfOwner: usage?.ofOwner ?? 0 };
  }

  addPart(id: string, part: Part, limits: StorageLimits): Promise<AddedPart> {
    const { number, blob, etag, bytes } = part;
    return this.#database.transaction((prepare): AddedPart => {
      const uploading = `${USAGE} WHERE id = :id AND state = 'uploading' AND expires_at > :now`;
      const usage = prepare(uploading).get({ id, number, now: this.#now() }) as Usage | undefined;
      if (usage === undefined) return { added: false, why: 'not_uploading' };
      const total = usage.ofOtherParts + bytes;
      const usedBytes = usage.ofOwner ?? 0;
      if (total > limits.maxRequestBytes) return { added: false, why: 'file_too_large' };
      if (usedBytes + bytes > limits.maxOwnerBytes) return { added: false, why: 'storage_limit', usedBytes };
      prepare('INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?, ?)').run(id, number, blob, etag, bytes);
      prepare('UPDATE requests SET stored_bytes = ? WHERE id = ?').run(total, id);
      return { added: true, replaced: usage.replaced };
    });
  }

  setParts(id: string, parts: readonly Part[], limits: StorageLimits): Promise<AddedPart> {
    const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
    return this.#database.transaction((prepare): AddedPart => {
      const uploading = `SELECT sum(own.stored_bytes) - requests.stored_bytes AS used
        FROM requests JOIN requests AS own ON own.owner = requests.owner
        WHERE requests.id = :id AND requests.state = 'uploading' AND requests.expires_at > :now`;
      const { used } = prepare(uploading).get({ id, now: this.#now() }) as { used: number | null };
      if (used === null) return { added: false, why: 'not_uploading' };
      if (bytes > limits.maxRequestBytes) return { added: false, why: 'file_too_large' };
      if (used + bytes > limits.maxOwnerBytes) return { added: false, why: 'storage_limit', usedBytes: used };
      prepare('DELETE FROM parts WHERE request_id = ?').run(id);
      const insert = prepare('INSERT INTO parts VALUES (?, ?, ?, ?, ?)');
      for (const { number, blob, etag, bytes } of parts) insert.run(id, number, blob, etag, bytes);
      prepare('UPDATE requests SET stored_bytes = ? WHERE id = ?').run(bytes, id);
      return { added: true, replaced: null };
    });
  }

  async parts(id: string): Promise<Part[]> {
    const rows = await this.#database.all<Part>(
      'SELECT number, blob, etag, bytes FROM parts WHERE request_id = :id ORDER BY number',
      { id },
    );
    return rows.map((row) => ({ ...row }));
  }

  complete(id: string, etags: ReadonlyMap<number, string>): Promise<boolean> {
    return this.#changes(
      `UPDATE requests SET state = 'queued', progress = 0, queued_at = :now, lease_until = NULL
       WHERE id = :id AND state = 'uploading' AND expires_at > :now
         AND part_count = :count
         AND part_count = (SELECT count(*) FROM parts WHERE request_id = :id)
         AND part_count = (
           SELECT count(*) FROM json_each(:named) AS named
           JOIN parts ON request_id = :id AND number = named.value ->> 0 AND lower(etag) = lower(named.value ->> 1))`,
      { id, now: this.#now(), count: etags.size, named: JSON.stringify([...etags]) },
    );
  }

  async claim({ leaseMs, running }: { leaseMs: number; running: readonly string[] }): Promise<Claim | null> {
    const lease = randomUUID();
    const now = this.#now();
    const row = await this.#database.get<RequestRow>(
      `UPDATE requests SET state = 'processing', lease = :lease, lease_until = :until, progress = 0,
         failed_attempts = failed_attempts + (state = 'processing')
       WHERE id = (
         SELECT id FROM requests INDEXED BY requests_waiting
         WHERE state IN ('queued', 'processing') AND expires_at > :now
           AND (state = 'queued' OR lease_until < :now AND lease NOT IN (SELECT value FROM json_each(:running)))
         ORDER BY queued_at, id LIMIT 1)
       RETURNING *`,
      { lease, now, until: now + leaseMs, running: JSON.stringify(running) },
    );
    if (row === undefined) return null;
    return { request: asRequest(row, 'processing', 0), lease, failedAttempts: row.failed_attempts };
  }

  renew(id: string, lease: string, options: { leaseMs: number; progress: number }): Promise<boolean> {
    const now = this.#now();
    const { progress } = options;
    const until = now + options.leaseMs;
    const renewal = `UPDATE requests SET progress = :progress, lease_until = :until WHERE ${HELD}`;
    return this.#changes(renewal, { id, lease, now, progress, until });
  }

  /** It keeps its place in the queue. */
  requeue(id: string, lease: string, { countAttempt }: { countAttempt: boolean }): Promise<boolean> {
    return this.#changes(
      `UPDATE requests SET state = 'queued', lease = NULL, lease_until = NULL, progress = 0,
         failed_attempts = failed_attempts + :failed
       WHERE ${HELD}`,
      { id, lease, now: this.#now(), failed: countAttempt ? 1 : 0 },
    );
  }

  finish(id: string, lease: string, outcome: Outcome, durationSeconds?: number): Promise<boolean> {
    const result = 'result' in outcome ? outcome.result : null;
    const failure = 'failure' in outcome ? JSON.stringify(outcome.failure) : null;
    const state = result === null ? 'failed' : 'completed';
    return this.#database.transaction((prepare) => {
      const now = this.#now();
      const { changes } = prepare(
        `UPDATE requests SET state = :state, progress = 1, duration_seconds = :seconds, queued_at = NULL, lease = NULL,
           lease_until = NULL
         WHERE ${HELD}`,
      ).run({ id, lease, now, state, seconds: durationSeconds ?? null });
      if (changes === 0) return false;
      prepare('INSERT INTO results VALUES (:id, :result, :failure)').run({ id, result, failure });
      prepare(
        `INSERT INTO webhooks (id, request_id, created_at, due_at)
         SELECT :webhook, id, :now, :now FROM requests WHERE id = :id AND webhook_url IS NOT NULL`,
      ).run({ id, now, webhook: randomUUID() });
      return true;
    });
  }

  async outcome(id: string): Promise<Outcome | null> {
    const row = await this.#database.get<{ result: string | null; failure: string | null }>(
      `SELECT result, failure FROM results JOIN requests ON id = request_id
       WHERE request_id = :id AND expires_at > :now`,
      { id, now: this.#now() },
    );
    if (row === undefined) return null;
    if (row.result !== null) return { result: row.result };
    return { failure: JSON.parse(row.failure ?? '') as Failure };
  }

  deleteParts(id: string): Promise<void> {
    return this.#database.transaction((prepare) => {
      prepare('DELETE FROM parts WHERE request_id = ?').run(id);
      prepare('UPDATE requests SET stored_bytes = 0 WHERE id = ?').run(id);
    });
  }

  delete(id: string, owner: string): Promise<'deleted' | 'already' | 'unknown'> {
    return this.#database.transaction((prepare) => {
      const row = prepare(
        'SELECT state FROM requests WHERE id = :id AND owner = :owner AND expires_at > :buried',
      ).get({ id, owner, buried: this.#now() - TOMBSTONE_MS }) as Pick<RequestRow, 'state'> | undefined;
      if (row === undefined) return 'unknown';
      if (row.state === 'deleted') return 'already';
      leaveTombstones(prepare, 'deleted', 'id = :id', { id });
      return 'deleted';
    });
  }

  async expire(): Promise<void> {
    const now = this.#now();
    await this.#database.transaction((prepare) => {
      // All states are named, so that the index on state and expiry serves.
      const alive = `state IN ('uploading', 'queued', 'processing', 'completed', 'failed')`;
      leaveTombstones(prepare, 'expired', `${alive} AND expires_at <= :now`, { now });
      const brokeOff = `state = 'uploading' AND lease_until < :now`;
      leaveTombstones(prepare, 'deleted', brokeOff, { now });
      const tombstones = `state IN ('expired', 'deleted')`;
      prepare(`DELETE FROM requests WHERE ${tombstones} AND expires_at <= ?`).run(now - TOMBSTONE_MS);
    });
    // What was erased is still in the log of the database until that is emptied.
    await this.#database.get('PRAGMA wal_checkpoint(TRUNCATE)');
  }

  async needingBlobs(ids: readonly string[]): Promise<string[]> {
    const rows = await this.#database.all<{ id: string }>(
      `SELECT id FROM requests
       WHERE id IN (SELECT value FROM json_each(:ids)) AND expires_at > :now
         AND state IN ('uploading', 'queued', 'processing')`,
      { ids: JSON.stringify(ids), now: this.#now() },
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
    await this.#database.run('INSERT OR REPLACE INTO write_check VALUES (1, :now)', { now: this.#now() });
  }

  #newRow(request: NewRequest, idempotency?: Idempotency): Values {
    const now = this.#now();
    const { uploadLeaseMs } = request;
    return {
      ...newValues(request, idempotency),
      now,
      leaseUntil: uploadLeaseMs === undefined ? null : now + uploadLeaseMs,
      expiresAt: now + ASYNCH_LIMITS.retentionSeconds * 1000,
    };
  }

  async #changes(sql: string, values: Values): Promise<boolean> {
    return (await this.#database.run(sql, values)) > 0;
  }
}

function stateOf({ state }: RequestRow): RequestState {
  return state as RequestState;
}
