import type { ResultChunk, ResultForm } from '../contracts.ts';
import type { Dialect, Query } from './database.ts';

/** Chunks have up to a few hundred kB each: few enough that other calls do not wait. */
const CHUNKS_PER_BATCH = 20;

/** Only the holder of the lease writes chunks. False when it no longer holds the request. */
export async function insertChunk(
  query: Query,
  held: string,
  id: string,
  lease: string,
  { form, number, text }: ResultChunk,
): Promise<boolean> {
  const rows = await query(
    `INSERT INTO result_chunks (name, request_id, text)
     SELECT CAST(:name AS text), id, CAST(:text AS text) FROM requests WHERE ${held}
     ON CONFLICT (name) DO UPDATE SET text = excluded.text RETURNING name`,
    { id, lease, name: `${lease}/${form}/${number}`, text },
  );
  return rows.length > 0;
}

export async function readChunk(
  query: Query,
  id: string,
  form: ResultForm,
  number: number,
): Promise<string | null> {
  const [row] = await query<{ text: string }>(
    `SELECT text FROM results JOIN requests ON id = results.request_id
     JOIN result_chunks ON name = chunks || CAST(:suffix AS text)
     WHERE results.request_id = :id AND expires_at > :now`,
    { id, suffix: `/${form}/${number}` },
  );
  return row?.text ?? null;
}

/** Part of `finish`: what earlier attempts have left. */
export async function deleteOtherChunks(query: Query, id: string, lease: string): Promise<void> {
  await query(
    `DELETE FROM result_chunks WHERE request_id = :id AND substr(name, 1, ${lease.length}) <> :lease`,
    { id, lease },
  );
}

/** Part of the sweep, before the requests themselves. True when there may be more. */
export async function deleteExpiredChunks(
  query: Query,
  { isOneOf, skipLocked }: Dialect,
  expired: string,
): Promise<boolean> {
  const rows = await query<{ name: string }>(
    `SELECT name FROM result_chunks JOIN requests ON id = request_id WHERE ${expired}
     LIMIT ${CHUNKS_PER_BATCH} ${skipLocked('result_chunks')}`,
  );
  const names = rows.map(({ name }) => name);
  if (names.length > 0) await query(`DELETE FROM result_chunks WHERE ${isOneOf('name', 'names')}`, { names });
  return names.length === CHUNKS_PER_BATCH;
}
