import type { ArrivedUpload, ErasableBlobs, Expired, SweepStore } from '../contracts.ts';
import type { SqlDatabase } from './database.ts';
import {
  BATCH_ROWS,
  isUnfinished,
  OWNER_BYTES,
  TOMBSTONE_CUTOFF,
  tombstoneRequests,
  UNFINISHED,
} from './request-row.ts';
import { deleteExpiredChunks } from './result-chunks.ts';

/** A whole recording in one call, which has a lease, passes our own checks. */
const ARRIVING = `state = 'uploading' AND lease_until IS NULL AND expires_at > :now`;

export function sweepStore(database: SqlDatabase): SweepStore {
  const { dialect } = database;
  return {
    async expire({ limit = BATCH_ROWS }: { limit?: number } = {}): Promise<Expired> {
      const { skipLocked, isOneOf, afterExpire } = dialect;
      // Not ordered, which would sort all of them for every batch. Another process may be sweeping: it has the rows it locked.
      const tail = `LIMIT :limit ${skipLocked('requests')}`;
      const tombstone = (state: 'expired' | 'deleted', where: string) =>
        database.transaction((query) =>
          tombstoneRequests(query, dialect, { state, where, values: { limit }, tail }),
        );
      // Every state is named, so that the index on state and expiry is used.
      const past = `state IN ('uploading', 'queued', 'processing', 'completed', 'failed') AND expires_at <= :now`;
      const chunks = await database.transaction((query) => deleteExpiredChunks(query, dialect, past));
      if (chunks) return { more: true, requests: 0, unprocessed: 0 };
      const expired = await tombstone('expired', past);
      const interrupted = await tombstone('deleted', `state = 'uploading' AND lease_until < :now`);
      const removed = await database.transaction(async (query) => {
        const rows = await query<{ id: string }>(
          `SELECT id FROM requests WHERE state IN ('expired', 'deleted') AND expires_at <= ${TOMBSTONE_CUTOFF} ${tail}`,
          { limit },
        );
        const ids = rows.map(({ id }) => id);
        await query(`DELETE FROM requests WHERE ${isOneOf('id', 'ids')}`, { ids });
        return ids.length;
      });
      const more = Math.max(expired.length, interrupted.length, removed) >= limit || (await shrink(database));
      if (!more) await database.query(afterExpire);
      const unprocessed = expired.filter(
        ({ state }) => state !== 'uploading' && isUnfinished({ state }),
      ).length;
      return { more, requests: expired.length, unprocessed };
    },

    blobsToErase({ limit, after }: { limit: number; after?: ErasableBlobs }): Promise<ErasableBlobs[]> {
      return database.query<ErasableBlobs>(
        `SELECT id, blobs_due AS due FROM requests
         WHERE blobs_due <= :now AND NOT (${UNFINISHED} AND expires_at > :now)
           AND (blobs_due, id) > (CAST(:afterDue AS bigint), :afterId)
         ORDER BY blobs_due, id LIMIT :limit`,
        { limit, afterDue: after?.due ?? -1, afterId: after?.id ?? '' },
      );
    },

    async noteErased(ids: readonly string[]): Promise<void> {
      const { isOneOf } = dialect;
      await database.transaction(async (query) => {
        // The request first, as everywhere: two transactions that lock in different orders would be a deadlock.
        await query(
          `UPDATE requests SET stored_bytes = 0, blobs_due = CASE WHEN urls_until > :now THEN urls_until END
           WHERE ${isOneOf('id', 'ids')}`,
          { ids },
        );
        await query(`DELETE FROM parts WHERE ${isOneOf('request_id', 'ids')}`, { ids });
      });
    },

    async needingBlobs(ids: readonly string[]): Promise<string[]> {
      const rows = await database.query<{ id: string }>(
        `SELECT id FROM requests WHERE ${dialect.isOneOf('id', 'ids')} AND expires_at > :now AND ${UNFINISHED}`,
        { ids },
      );
      return rows.map(({ id }) => id);
    },

    async arrivingUploads({ limit, after }: { limit: number; after: string }): Promise<string[]> {
      const rows = await database.query<{ id: string }>(
        `SELECT id FROM requests
         WHERE ${ARRIVING} AND urls_until > :now AND id > :after ORDER BY id LIMIT :limit`,
        { limit, after },
      );
      return rows.map(({ id }) => id);
    },

    async noteArrived(bytes: ReadonlyMap<string, number>): Promise<ArrivedUpload[]> {
      const { isOneOf, elements, skipLocked } = dialect;
      const uploading = `${isOneOf('requests.id', 'ids')} AND ${ARRIVING}`;
      type Row = {
        id: string;
        owner: string;
        bytes: number;
        owner_bytes: number;
        owner_limits: string | null;
      };
      const rows = await database.transaction(async (query) => {
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
    },
  };
}

/** One step of giving free space back. False: nothing was to be done. */
async function shrink(database: SqlDatabase): Promise<boolean> {
  const { shrink: statements } = database.dialect;
  if (statements === undefined) return false;
  const [row] = await database.query<{ due: number }>(statements.isDue);
  if (!row?.due) return false;
  await database.query(statements.step);
  return true;
}
