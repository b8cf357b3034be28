import type { Webhook, WebhookStore } from '../contracts.ts';
import type { SqlDatabase } from './database.ts';
import { toTrace } from './request-row.ts';

interface WebhookRow {
  id: string;
  request_id: string;
  owner: string;
  webhook_url: string;
  label: string | null;
  state: 'completed' | 'failed' | 'expired';
  created_at: number;
  attempts: number;
  trace: string | null;
}

export class SqlWebhookStore implements WebhookStore {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  async claim({ limit, holdMs }: { limit: number; holdMs: number }): Promise<Webhook[]> {
    // Most of the time none is due, and then nothing is locked or written.
    const due = await this.#database.query('SELECT 1 FROM webhooks WHERE due_at <= :now LIMIT 1');
    if (due.length === 0) return [];
    const { isOneOf, skipLocked } = this.#database.dialect;
    return this.#database.transaction(async (query) => {
      const rows = await query<WebhookRow>(
        `SELECT webhooks.id, request_id, owner, webhook_url, label, state, webhooks.created_at, attempts, trace
         FROM webhooks JOIN requests ON requests.id = request_id WHERE due_at <= :now
         ORDER BY due_at, webhooks.id LIMIT :limit ${skipLocked('webhooks')}`,
        { limit },
      );
      await query(
        `UPDATE webhooks SET due_at = :now + CAST(:holdMs AS bigint) WHERE ${isOneOf('id', 'ids')}`,
        { holdMs, ids: rows.map(({ id }) => id) },
      );
      return rows.map(toWebhook);
    });
  }

  async retry(id: string, { afterMs }: { afterMs: number }): Promise<void> {
    await this.#database.query(
      'UPDATE webhooks SET attempts = attempts + 1, due_at = :now + CAST(:afterMs AS bigint) WHERE id = :id',
      { id, afterMs },
    );
  }

  async remove(id: string): Promise<void> {
    await this.#database.transaction(async (query) => {
      // An expired request kept these for its webhook. The request first, as everywhere.
      await query(
        `UPDATE requests SET label = NULL, webhook_url = NULL, trace = NULL
         WHERE state = 'expired' AND id = (SELECT request_id FROM webhooks WHERE id = :id)`,
        { id },
      );
      await query('DELETE FROM webhooks WHERE id = :id', { id });
    });
  }

  async count(): Promise<number> {
    const [row] = await this.#database.query<{ count: number }>('SELECT count(*) AS count FROM webhooks');
    return row?.count ?? 0;
  }
}

function toWebhook(row: WebhookRow): Webhook {
  return {
    id: row.id,
    requestId: row.request_id,
    owner: row.owner,
    url: row.webhook_url,
    label: row.label,
    status: row.state,
    createdAt: row.created_at,
    attempts: row.attempts,
    trace: toTrace(row),
  };
}
