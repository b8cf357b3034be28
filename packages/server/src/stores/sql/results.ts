import type { Failure, Outcome, ResultChunk, ResultForm, ResultStore } from '../contracts.ts';
import type { SqlDatabase } from './database.ts';
import { HELD, insertWebhooks, type RequestRow } from './request-row.ts';
import { deleteOtherChunks, insertChunk, readChunk } from './result-chunks.ts';

export function resultStore(database: SqlDatabase): ResultStore {
  const { dialect } = database;
  return {
    addResultChunk(id: string, lease: string, chunk: ResultChunk): Promise<boolean> {
      return insertChunk(database.query, HELD, id, lease, chunk);
    },

    resultChunk(id: string, form: ResultForm, number: number): Promise<string | null> {
      return readChunk(database.query, id, form, number);
    },

    finish(id: string, lease: string, outcome: Outcome, durationSeconds?: number): Promise<boolean> {
      const result = 'result' in outcome ? outcome.result : null;
      const failure = 'failure' in outcome ? JSON.stringify(outcome.failure) : null;
      const chunks = 'chunked' in outcome ? lease : null;
      const state = failure === null ? 'completed' : 'failed';
      return database.transaction(async (query) => {
        const [request] = await query<Pick<RequestRow, 'webhook_url'>>(
          `UPDATE requests SET state = :state, progress = 1, duration_seconds = :seconds, queued_at = NULL, lease = NULL,
             lease_until = NULL, blobs_due = :now
           WHERE ${HELD} RETURNING webhook_url`,
          { id, lease, state, seconds: durationSeconds ?? null },
        );
        if (request === undefined) return false;
        await query(
          'INSERT INTO results (request_id, result, failure, chunks) VALUES (:id, :result, :failure, :chunks)',
          { id, result, failure, chunks },
        );
        await deleteOtherChunks(query, id, lease);
        if (request.webhook_url !== null) await insertWebhooks(query, dialect, [id]);
        return true;
      });
    },

    async outcome(id: string): Promise<Outcome | null> {
      const [row] = await database.query<{
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
    },
  };
}
