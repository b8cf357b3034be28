// The row of a request is also its place in the queue.
import { randomUUID } from 'node:crypto';
import type { Claim, ClaimOptions, QueueStore, RequeueOptions } from '../contracts.ts';
import { StoreUnavailableError } from '../errors.ts';
import type { Dialect, Query, SqlDatabase, Values } from './database.ts';
import { HELD, type RequestRow, toRequest, toTrace, UPLOADING } from './request-row.ts';

const MAX_LOST_LEASES = 100;

/** Part of a transaction: uploading -> queued, if these are exactly the parts there are. */
export async function enqueue(
  query: Query,
  dialect: Dialect,
  id: string,
  etags: ReadonlyMap<number, string>,
): Promise<RequestRow | undefined> {
  const { elements, notify } = dialect;
  const [row] = await query<RequestRow>(
    `UPDATE requests SET state = 'queued', progress = 0, queued_at = :now, lease_until = NULL, turn = ${nextTurn(dialect)}
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
function nextTurn({ waitingRequests, greatest }: Dialect): string {
  const waiting = `state IN ('queued', 'processing')`;
  const own = `SELECT max(turn) + 1 FROM requests AS own WHERE own.owner = requests.owner AND own.${waiting}`;
  const served = `SELECT turn FROM ${waitingRequests} WHERE ${waiting} AND state = 'queued' AND not_before <= :now
    ORDER BY turn, queued_at, id LIMIT 1`;
  const last = `SELECT max(turn) FROM ${waitingRequests} WHERE ${waiting}`;
  return greatest(`coalesce((${own}), 0)`, `coalesce((${served}), (${last}), 0)`);
}

export function queueStore(database: SqlDatabase): QueueStore {
  const { dialect } = database;
  /** Leases of claims that failed here. The database may have made them all the same, and then no worker holds them. */
  let lostLeases: string[] = [];

  async function updateHeld(changes: string, values: Values, returning = 'id'): Promise<boolean> {
    const update = `UPDATE requests SET ${changes} WHERE ${HELD} RETURNING ${returning}`;
    return (await database.query(update, values)).length > 0;
  }

  return {
    async claim({ leaseMs, running, exceptOwners = [] }: ClaimOptions): Promise<Claim | null> {
      const lease = randomUUID();
      const lost = lostLeases;
      const { isOneOf, skipLocked, waitingRequests } = dialect;
      // While the database was unavailable no lease could be renewed: their holders have one lease's time to do so. If they
      // were stopped meanwhile, that is no fault of the recording: only a lease that was taken or renewed since then counts as
      // a failed attempt. (A database that hung executes the last renewal when it goes on.)
      const { availableMs } = database;
      const takeOver = availableMs > leaseMs;
      const withinMs = Math.min(Math.round(availableMs), Number.MAX_SAFE_INTEGER) - leaseMs;
      try {
        const [row] = await database.query<RequestRow & { waited_ms: number }>(
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
        lostLeases = lostLeases.filter((one) => !lost.includes(one));
        return null;
      } catch (error) {
        if (error instanceof StoreUnavailableError) {
          lostLeases = [...lostLeases, lease].slice(-MAX_LOST_LEASES);
        }
        throw error;
      }
    },

    renew(id: string, lease: string, options: { leaseMs: number; progress: number }): Promise<boolean> {
      return updateHeld('progress = :progress, lease_until = :now + CAST(:leaseMs AS bigint)', {
        id,
        lease,
        ...options,
      });
    },

    requeue(id: string, lease: string, { countAttempt, afterMs = 0 }: RequeueOptions): Promise<boolean> {
      return updateHeld(
        `state = 'queued', lease = NULL, lease_until = NULL, progress = 0, failed_attempts = failed_attempts + :failed,
         postponed = postponed + :postponed, not_before = :now + CAST(:afterMs AS bigint)`,
        {
          id,
          lease,
          failed: countAttempt ? 1 : 0,
          postponed: countAttempt || afterMs === 0 ? 0 : 1,
          afterMs,
        },
        dialect.notify(`'queued'`),
      );
    },
  };
}
