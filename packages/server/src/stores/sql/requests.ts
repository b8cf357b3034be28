import type { RequestState } from '@undertone/contract';
import type { AsynchRequest, Backlog, ListOptions, RequestStore } from '../contracts.ts';
import type { SqlDatabase } from './database.ts';
import { queueStore } from './queue.ts';
import {
  findRequest,
  type RequestRow,
  TOMBSTONE_CUTOFF,
  tombstoneRequests,
  toVisibleRequest,
  VISIBLE,
  type VisibleRow,
} from './request-row.ts';
import { resultStore } from './results.ts';
import { sweepStore } from './sweep.ts';
import { uploadStore } from './uploads.ts';

export function requestStore(database: SqlDatabase): RequestStore {
  const { dialect } = database;
  return {
    ...uploadStore(database),
    ...queueStore(database),
    ...resultStore(database),
    ...sweepStore(database),

    async list(owner: string, { limit, state, after }: ListOptions): Promise<AsynchRequest[]> {
      const within =
        state === 'expired'
          ? `expires_at <= :now AND expires_at > ${TOMBSTONE_CUTOFF}`
          : 'expires_at > :now AND (CAST(:state AS text) IS NULL OR state = :state)';
      const rows = await database.query<VisibleRow>(
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
    },

    find(id: string): Promise<AsynchRequest | null> {
      return findRequest(database.query, id);
    },

    delete(id: string, owner: string): Promise<'deleted' | 'already' | 'unknown'> {
      return database.transaction(async (query) => {
        const [found] = await query<Pick<RequestRow, 'state'>>(
          `SELECT state FROM requests WHERE id = :id AND owner = :owner AND expires_at > ${TOMBSTONE_CUTOFF} ${dialect.forUpdate}`,
          { id, owner },
        );
        if (found === undefined) return 'unknown';
        if (found.state === 'deleted') return 'already';
        await tombstoneRequests(query, dialect, { state: 'deleted', where: 'id = :id', values: { id } });
        return 'deleted';
      });
    },

    async countByState(): Promise<Partial<Record<RequestState, number>>> {
      const rows = await database.query<{ state: RequestState; count: number }>(
        `SELECT state, count(*) AS count FROM requests WHERE state <> 'deleted' GROUP BY state`,
      );
      return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
    },

    async backlog(): Promise<Backlog> {
      const [row] = await database.query<{ abandoned: number; oldest: number }>(
        `SELECT count(lease) AS abandoned, coalesce(:now - min(created_at), 0) AS oldest
         FROM ${dialect.waitingRequests}
         WHERE state IN ('queued', 'processing') AND expires_at > :now AND (state = 'queued' OR lease_until < :now)`,
      );
      return { abandoned: row?.abandoned ?? 0, oldestMs: row?.oldest ?? 0 };
    },

    async checkWritable(): Promise<void> {
      await database.query(
        'INSERT INTO write_check (id, at) VALUES (1, :now) ON CONFLICT (id) DO UPDATE SET at = excluded.at',
      );
    },
  };
}
