import type { ModelId, RequestState } from '@undertone/contract';
import type { PatientDatabase } from './patient-database.ts';
import type {
  AddedPart,
  AsynchRequest,
  Failure,
  NewRequest,
  Outcome,
  Part,
  RequestStore,
} from './request-store.ts';

interface Row {
  id: string;
  owner: string;
  upload_id: string;
  model: string;
  interval_seconds: number;
  part_count: number;
  state: RequestState;
  progress: number;
  arrived: number;
  created_at: number;
  expires_at: number;
}

export class SqliteRequestStore implements RequestStore {
  readonly #database: PatientDatabase;
  readonly #now: () => number;

  constructor(database: PatientDatabase, now: () => number = Date.now) {
    this.#database = database;
    this.#now = now;
  }

  async create(request: NewRequest): Promise<void> {
    const { id, owner, uploadId, model, intervalSeconds, partCount, createdAt, expiresAt } = request;
    await this.#database.run(
      `INSERT INTO requests (id, owner, upload_id, model, interval_seconds, part_count, state, created_at, expires_at)
       VALUES (:id, :owner, :uploadId, :model, :intervalSeconds, :partCount, 'uploading', :createdAt, :expiresAt)`,
      { id, owner, uploadId, model, intervalSeconds, partCount, createdAt, expiresAt },
    );
  }

  async find(id: string): Promise<AsynchRequest | null> {
    const row = await this.#database.get<Row>(
      `SELECT *, (SELECT count(*) FROM parts WHERE request_id = id) AS arrived FROM requests WHERE id = :id`,
      { id },
    );
    return row === undefined ? null : asRequest(row, this.#now());
  }

  addPart(id: string, part: Part, { maxTotalBytes }: { maxTotalBytes: number }): Promise<AddedPart> {
    const { number, blob, etag, bytes } = part;
    return this.#database.transaction((statement): AddedPart => {
      const uploading = statement(
        `SELECT 1 FROM requests WHERE id = :id AND state = 'uploading' AND expires_at > :now`,
      ).get({ id, now: this.#now() });
      if (uploading === undefined) return { added: false, why: 'not_uploading' };
      const { beside } = statement(BYTES_BESIDE).get({ id, number }) as { beside: number };
      if (beside + bytes > maxTotalBytes) return { added: false, why: 'too_large' };
      const before = statement('SELECT blob FROM parts WHERE request_id = :id AND number = :number').get({
        id,
        number,
      }) as { blob: string } | undefined;
      statement(
        `INSERT OR REPLACE INTO parts (request_id, number, blob, etag, bytes)
         VALUES (:id, :number, :blob, :etag, :bytes)`,
      ).run({ id, number, blob, etag, bytes });
      return { added: true, replaced: before?.blob ?? null };
    });
  }

  async bytesBeside(id: string, number: number): Promise<number> {
    const row = await this.#database.get<{ beside: number }>(BYTES_BESIDE, { id, number });
    return row?.beside ?? 0;
  }

  async parts(id: string): Promise<Part[]> {
    const rows = await this.#database.all<Part>(
      'SELECT number, blob, etag, bytes FROM parts WHERE request_id = :id ORDER BY number',
      { id },
    );
    return rows.map((row) => ({ ...row }));
  }

  queue(id: string, etags: ReadonlyMap<number, string>): Promise<boolean> {
    return this.#changes(
      `UPDATE requests SET state = 'queued', progress = 0
       WHERE id = :id AND state = 'uploading' AND expires_at > :now AND part_count = (
         SELECT count(*) FROM json_each(:named) AS named
         JOIN parts ON parts.request_id = :id
           AND parts.number = named.value ->> 0 AND parts.etag = named.value ->> 1)`,
      { id, now: this.#now(), named: JSON.stringify([...etags]) },
    );
  }

  begin(id: string, lease: string): Promise<boolean> {
    return this.#changes(
      `UPDATE requests SET state = 'processing', worker = :lease, progress = 0
       WHERE id = :id AND state IN ('queued', 'processing') AND expires_at > :now`,
      { id, lease, now: this.#now() },
    );
  }

  report(id: string, lease: string, progress: number): Promise<boolean> {
    return this.#changes(
      `UPDATE requests SET progress = :progress WHERE id = :id AND state = 'processing' AND worker = :lease`,
      { id, lease, progress },
    );
  }

  async holds(id: string, lease: string): Promise<boolean> {
    const row = await this.#database.get(
      `SELECT 1 FROM requests
       WHERE id = :id AND state = 'processing' AND worker = :lease AND expires_at > :now`,
      { id, lease, now: this.#now() },
    );
    return row !== undefined;
  }

  finish(id: string, lease: string, outcome: Outcome): Promise<boolean> {
    const completed = 'result' in outcome;
    return this.#changes(
      `UPDATE requests SET state = :state, result = :result, problem = :problem, worker = NULL, progress = 1
       WHERE id = :id AND state = 'processing' AND worker = :lease AND expires_at > :now`,
      {
        id,
        lease,
        now: this.#now(),
        state: completed ? 'completed' : 'failed',
        result: completed ? outcome.result : null,
        problem: completed ? null : JSON.stringify(outcome.failure),
      },
    );
  }

  giveBack(id: string, lease: string): Promise<boolean> {
    return this.#changes(
      `UPDATE requests SET state = 'queued', worker = NULL, progress = 0
       WHERE id = :id AND state = 'processing' AND worker = :lease`,
      { id, lease },
    );
  }

  async forgetParts(id: string): Promise<void> {
    await this.#database.run('DELETE FROM parts WHERE request_id = :id', { id });
  }

  async outcome(id: string): Promise<Outcome | null> {
    const row = await this.#database.get<{ result: string | null; problem: string | null }>(
      'SELECT result, problem FROM requests WHERE id = :id AND expires_at > :now',
      { id, now: this.#now() },
    );
    if (row === undefined) return null;
    if (row.result !== null) return { result: row.result };
    return row.problem === null ? null : { failure: JSON.parse(row.problem) as Failure };
  }

  delete(id: string): Promise<boolean> {
    return this.#changes('DELETE FROM requests WHERE id = :id', { id });
  }

  async expire(): Promise<string[]> {
    const over = { now: this.#now() };
    const due = `state <> 'expired' AND expires_at <= :now`;
    // Looking first: a write takes the lock even when there is nothing to write.
    const any = await this.#database.get(`SELECT 1 FROM requests WHERE ${due} LIMIT 1`, over);
    if (any === undefined) return [];
    const rows = await this.#database.all<{ id: string }>(
      `UPDATE requests SET state = 'expired', result = NULL, problem = NULL, worker = NULL
       WHERE ${due} RETURNING id`,
      over,
    );
    return rows.map(({ id }) => id);
  }

  async forgetExpired(before: number): Promise<void> {
    const old = `state = 'expired' AND expires_at < :before`;
    const any = await this.#database.get(`SELECT 1 FROM requests WHERE ${old} LIMIT 1`, { before });
    if (any !== undefined) await this.#database.run(`DELETE FROM requests WHERE ${old}`, { before });
    await this.#database.emptyLog();
  }

  async inState(state: RequestState): Promise<string[]> {
    const rows = await this.#database.all<{ id: string }>('SELECT id FROM requests WHERE state = :state', {
      state,
    });
    return rows.map(({ id }) => id);
  }

  async countByState(): Promise<Partial<Record<RequestState, number>>> {
    const rows = await this.#database.all<{ state: RequestState; count: number }>(
      'SELECT state, count(*) AS count FROM requests GROUP BY state',
    );
    return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
  }

  async #changes(sql: string, values: Parameters<PatientDatabase['run']>[1]): Promise<boolean> {
    return (await this.#database.run(sql, values)) > 0;
  }
}

const BYTES_BESIDE =
  'SELECT coalesce(sum(bytes), 0) AS beside FROM parts WHERE request_id = :id AND number <> :number';

function asRequest(row: Row, now: number): AsynchRequest {
  const state = row.expires_at <= now ? 'expired' : row.state;
  return {
    id: row.id,
    owner: row.owner,
    uploadId: row.upload_id,
    model: row.model as ModelId,
    intervalSeconds: row.interval_seconds,
    partCount: row.part_count,
    state,
    progress: state === 'uploading' ? row.arrived / row.part_count : row.progress,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  };
}
