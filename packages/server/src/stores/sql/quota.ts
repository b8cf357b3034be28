// What an owner has, counted from its requests.
import type { CreateQuota, Quota } from '../contracts.ts';
import { QuotaExceededError } from '../errors.ts';
import type { Dialect, Query } from './database.ts';

/** An upload whose call was interrupted is not open any more. */
const OPEN = `state = 'uploading' AND expires_at > :now AND (lease_until IS NULL OR lease_until > :now)`;
/** A whole recording in one call has its place in the queue from the start: it is not refused after it was sent. */
const QUEUED = `(state = 'queued' AND expires_at > :now OR state = 'uploading' AND lease_until > :now)`;

/** Named in every count, so that the index on unfinished uploads and queued requests is used. */
const INDEXED = `owner = :owner AND state IN ('uploading', 'queued')`;

/** Part of a transaction, one at a time for each owner. The error is returned: it must not break the transaction. */
export async function checkQuota(
  query: Query,
  { lock }: Dialect,
  owner: string,
  quota: CreateQuota,
): Promise<QuotaExceededError | null> {
  const limited = (['open', 'queued', 'storage'] as const).filter((name) => (quota[name] ?? 0) > 0);
  if (limited.length === 0) return null;
  await query(`SELECT ${lock('CAST(:owner AS text)')}`, { owner });
  const [used] = await query<Quota>(
    `SELECT
       (SELECT count(*) FROM requests WHERE ${INDEXED} AND ${OPEN}) AS open,
       (SELECT count(*) FROM requests WHERE ${INDEXED} AND ${QUEUED}) AS queued,
       (SELECT CAST(coalesce(sum(stored_bytes), 0) AS bigint) FROM requests
        WHERE owner = :owner AND stored_bytes > 0) AS storage`,
    { owner },
  );
  for (const name of limited) {
    const limit = quota[name] ?? 0;
    const more = name === 'storage' ? (quota.announcedBytes ?? 1) : 1;
    if (used && used[name] + more > limit)
      return new QuotaExceededError({ quota: name, limit, used: used[name] });
  }
  return null;
}
