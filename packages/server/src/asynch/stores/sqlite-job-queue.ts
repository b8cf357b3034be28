import { randomUUID } from 'node:crypto';
import type { Job, JobQueue } from './job-queue.ts';
import type { PatientDatabase } from './patient-database.ts';

export class SqliteJobQueue implements JobQueue {
  readonly #database: PatientDatabase;
  readonly #now: () => number;
  /** Begins every lease given out here. */
  readonly #holder = randomUUID();

  constructor(database: PatientDatabase, now: () => number = Date.now) {
    this.#database = database;
    this.#now = now;
  }

  async add(requestId: string): Promise<void> {
    await this.#database.run(
      'INSERT INTO jobs (request_id, added_at) VALUES (:requestId, :now) ON CONFLICT DO NOTHING',
      { requestId, now: this.#now() },
    );
  }

  async claim(leaseMs: number): Promise<Job | null> {
    // Looking first: a write takes the lock even when there is nothing to write.
    if ((await this.waiting()) === 0) return null;
    const lease = `${this.#holder}/${randomUUID()}`;
    const row = await this.#database.get<{ request_id: string; deaths: number }>(
      `UPDATE jobs SET lease = :lease, lease_until = :until WHERE request_id = (
         SELECT request_id FROM jobs WHERE lease IS NULL ORDER BY added_at, rowid LIMIT 1)
       RETURNING request_id, deaths`,
      { lease, until: this.#now() + leaseMs },
    );
    return row === undefined ? null : { requestId: row.request_id, lease, deaths: row.deaths };
  }

  async renew({ requestId, lease }: Job, leaseMs: number): Promise<boolean> {
    const changes = await this.#database.run(
      'UPDATE jobs SET lease_until = :until WHERE request_id = :requestId AND lease = :lease',
      { requestId, lease, until: this.#now() + leaseMs },
    );
    return changes > 0;
  }

  async release({ requestId, lease }: Job, { died }: { died: boolean }): Promise<void> {
    await this.#database.run(
      `UPDATE jobs SET lease = NULL, lease_until = NULL, deaths = deaths + :deaths
       WHERE request_id = :requestId AND lease = :lease`,
      { requestId, lease, deaths: died ? 1 : 0 },
    );
  }

  async releaseDead(): Promise<Job[]> {
    const dead = `lease_until < :now AND lease NOT LIKE :ours || '/%'`;
    const values = { now: this.#now(), ours: this.#holder };
    const find = `SELECT request_id AS requestId, lease, deaths FROM jobs WHERE ${dead}`;
    if ((await this.#database.get(find, values)) === undefined) return [];
    return this.#database.transaction((statement) => {
      const jobs = statement(find).all(values) as unknown as Job[];
      statement(`UPDATE jobs SET lease = NULL, lease_until = NULL, deaths = deaths + 1 WHERE ${dead}`).run(
        values,
      );
      return jobs.map((job) => ({ ...job }));
    });
  }

  async remove(requestId: string): Promise<void> {
    await this.#database.run('DELETE FROM jobs WHERE request_id = :requestId', { requestId });
  }

  async waiting(): Promise<number> {
    const row = await this.#database.get<{ count: number }>(
      'SELECT count(*) AS count FROM jobs WHERE lease IS NULL',
    );
    return row?.count ?? 0;
  }
}
