import { ASYNCH_LIMITS } from '@undertone/contract';
import type { Prepare, Values } from '../sqlite/retrying-database.ts';
import { ERASED } from './request-row.ts';

/** A request that is over is still answered with 410, or its DELETE with 204, for so long after it would have expired. */
export const TOMBSTONE_MS = ASYNCH_LIMITS.tombstoneSeconds * 1000;

/** Part of a transaction: erases requests down to their id, owner and times. */
export function leaveTombstones(
  prepare: Prepare,
  state: 'expired' | 'deleted',
  where: string,
  values: Values,
): void {
  for (const table of ['parts', 'results', 'webhooks']) {
    prepare(`DELETE FROM ${table} WHERE request_id IN (SELECT id FROM requests WHERE ${where})`).run(values);
  }
  prepare(`UPDATE requests SET state = '${state}', ${ERASED} WHERE ${where}`).run(values);
}
