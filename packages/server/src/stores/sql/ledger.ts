import type { LedgerStore, OwnerUse } from '../contracts.ts';
import type { SqlDatabase } from './database.ts';

interface UseRow {
  owner: string;
  open: number;
  queued: number;
  storage: number;
  audio_seconds: number;
}

const HOUR = 'CAST(:now / 3600000 AS bigint)';

export class SqlLedgerStore implements LedgerStore {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  async addAudio(seconds: ReadonlyMap<string, number>): Promise<void> {
    if (seconds.size === 0) return;
    const { elements } = this.#database.dialect;
    await this.#database.transaction(async (query) => {
      // Every process locks owners in the same order: no deadlocks. SQLite needs the WHERE before ON CONFLICT.
      await query(
        `INSERT INTO audio_use (owner, hour, seconds)
         SELECT value ->> 0, ${HOUR}, CAST(value ->> 1 AS double precision) FROM ${elements('seconds')} AS used
         WHERE true ORDER BY 1
         ON CONFLICT (owner, hour) DO UPDATE SET seconds = audio_use.seconds + excluded.seconds`,
        { seconds: JSON.stringify([...seconds]) },
      );
      await query(`DELETE FROM audio_use WHERE hour <= ${HOUR} - 24`);
    });
  }

  async audioSeconds(owner: string): Promise<number> {
    const [row] = await this.#database.query<{ seconds: number }>(
      `SELECT coalesce(sum(seconds), 0) AS seconds FROM audio_use WHERE owner = :owner AND hour > ${HOUR} - 24`,
      { owner },
    );
    return row?.seconds ?? 0;
  }

  async use(): Promise<Map<string, OwnerUse>> {
    const rows = await this.#database.query<UseRow>(
      `SELECT owner, CAST(sum(open) AS bigint) AS open, CAST(sum(queued) AS bigint) AS queued,
         CAST(sum(stored) AS bigint) AS storage, sum(seconds) AS audio_seconds
       FROM (
         SELECT owner, CASE state WHEN 'uploading' THEN 1 ELSE 0 END AS open,
           CASE state WHEN 'queued' THEN 1 ELSE 0 END AS queued, 0 AS stored, 0.0 AS seconds
         FROM requests WHERE state IN ('uploading', 'queued') AND expires_at > :now
         UNION ALL SELECT owner, 0, 0, stored_bytes, 0.0 FROM requests WHERE stored_bytes > 0
         UNION ALL SELECT owner, 0, 0, 0, seconds FROM audio_use WHERE hour > ${HOUR} - 24
       ) AS used GROUP BY owner`,
    );
    return new Map(
      rows.map(({ owner, open, queued, storage, audio_seconds: audioSeconds }) => [
        owner,
        { open, queued, storage, audioSeconds },
      ]),
    );
  }
}
