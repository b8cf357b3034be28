import type { RequestState } from '@undertone/contract';
import { LATE_UPLOAD_MS } from '../blobs.ts';
import {
  type AddedPart,
  type AsynchRequest,
  type Completed,
  type CreatedOnce,
  type CreateQuota,
  checkLimits,
  type Idempotency,
  type NewRequest,
  type Part,
  type RequestWithUsage,
  type StorageLimits,
  type UploadStore,
} from '../contracts.ts';
import { QuotaExceededError } from '../errors.ts';
import type { SqlDatabase, Values } from './database.ts';
import { ACTIVE_KEY } from './keys.ts';
import { enqueue } from './queue.ts';
import { checkQuota } from './quota.ts';
import {
  findRequest,
  INSERT_REQUEST,
  newRequestValues,
  OWNER_BYTES,
  type RequestRow,
  TOMBSTONE_CUTOFF,
  tombstoneRequests,
  toRequest,
  toVisibleRequest,
  UPLOADING,
  VISIBLE,
  type VisibleRow,
} from './request-row.ts';

export function uploadStore(database: SqlDatabase): UploadStore {
  const { dialect } = database;

  /** In place of the part with this number, or of all parts. Null when the request is not uploading. */
  function storeParts(
    id: string,
    parts: readonly Part[],
    limits: StorageLimits,
    replacedNumber?: number,
  ): Promise<Exclude<AddedPart, { why: 'not_uploading' }> | null> {
    const { lock, forUpdate, elements } = dialect;
    const replaced = replacedNumber === undefined ? '' : 'AND number = :number';
    const values: Values = { id, number: replacedNumber ?? null, parts: JSON.stringify(parts) };
    return database.transaction(async (query) => {
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

  async function parts(id: string): Promise<Part[]> {
    const rows = await database.query<Part>(
      'SELECT number, blob, etag, bytes FROM parts WHERE request_id = :id ORDER BY number',
      { id },
    );
    return rows.map((row) => ({ ...row }));
  }

  return {
    parts,

    async create(request: NewRequest, quota: CreateQuota = {}): Promise<AsynchRequest> {
      const created = await database.transaction(async (query) => {
        const exceeded = await checkQuota(query, dialect, request.owner, quota);
        return exceeded ?? (await query<RequestRow>(INSERT_REQUEST, newRequestValues(request)));
      });
      if (created instanceof QuotaExceededError) throw created;
      return toRequest(created[0] as RequestRow, 'uploading', 0);
    },

    async createOnce(
      request: NewRequest,
      idempotency: Idempotency,
      quota: CreateQuota = {},
    ): Promise<CreatedOnce> {
      const mine = { owner: request.owner, key: idempotency.key };
      const created = await database.transaction(async (query) => {
        // One at a time: concurrent calls with one key create one request. The owner before any row, as everywhere: see `addPart`.
        await query(`SELECT ${dialect.lock('CAST(:owner AS text)')}`, { owner: request.owner });
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
          await tombstoneRequests(query, dialect, interrupted);
        }
        const exceeded = await checkQuota(query, dialect, request.owner, quota);
        if (exceeded !== null) return exceeded;
        const [row] = await query<RequestRow>(INSERT_REQUEST, newRequestValues(request, idempotency));
        return { request: toRequest(row as RequestRow, 'uploading', 0), isNew: true };
      });
      if (created instanceof QuotaExceededError) throw created;
      return created;
    },

    async renewUpload(id: string, { leaseMs }: { leaseMs: number }): Promise<void> {
      await database.query(
        `UPDATE requests SET lease_until = :now + CAST(:leaseMs AS bigint)
         WHERE id = :id AND state = 'uploading' AND lease_until IS NOT NULL`,
        { id, leaseMs },
      );
    },

    async findWithUsage(id: string, number: number): Promise<RequestWithUsage | null> {
      type Row = VisibleRow & {
        request_bytes: number;
        owner_bytes: number;
        owner_limits: string | null;
        has_key: boolean | number;
      };
      const [row] = await database.query<Row>(
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
    },

    async addPart(id: string, part: Part, limits: StorageLimits): Promise<AddedPart> {
      const answer = await storeParts(id, [part], limits, part.number);
      return answer ?? { added: false, why: 'not_uploading', request: await findRequest(database.query, id) };
    },

    async complete(
      id: string,
      etags: ReadonlyMap<number, string>,
      arrived?: { parts: readonly Part[]; limits: StorageLimits },
      maxQueued = 0,
    ): Promise<Completed> {
      const stored = arrived && (await storeParts(id, arrived.parts, arrived.limits));
      if (stored?.added === false) return stored;
      const row = await database.transaction(async (query) => {
        const [found] = await query<RequestRow>('SELECT owner FROM requests WHERE id = :id', { id });
        const quota = { queued: maxQueued };
        const exceeded = found && (await checkQuota(query, dialect, found.owner, quota));
        return exceeded ?? (await enqueue(query, dialect, id, etags));
      });
      if (row instanceof QuotaExceededError) throw row;
      if (row !== undefined) return { queued: true, request: toRequest(row, 'queued', 0), parts: [] };
      const request = await findRequest(database.query, id);
      return { queued: false, request, parts: request?.state === 'uploading' ? await parts(id) : [] };
    },

    async noteUrls(id: string): Promise<void> {
      await database.query(
        `UPDATE requests SET urls_until = :now + ${LATE_UPLOAD_MS}, blobs_due = coalesce(blobs_due, :now + ${LATE_UPLOAD_MS})
         WHERE id = :id`,
        { id },
      );
    },
  };
}
