import { asWebhook, type Webhook, type WebhookRow, type WebhookStore } from '../webhook-store.ts';
import type { RetryingDatabase } from './retrying-database.ts';

export class SqliteWebhookStore implements WebhookStore {
  readonly #database: RetryingDatabase;
  readonly #now: () => number;

  constructor(database: RetryingDatabase, now: () => number = Date.now) {
    this.#database = database;
    this.#now = now;
  }

  async claim({ limit, holdMs }: { limit: number; holdMs: number }): Promise<Webhook[]> {
    const now = this.#now();
    // Most of the time there is none, and then nothing is written.
    const due = 'SELECT id FROM webhooks WHERE due_at <= :now ORDER BY due_at, id LIMIT :limit';
    if ((await this.#database.get(due, { now, limit })) === undefined) return [];
    return this.#database.transaction((prepare) => {
      const rows = prepare(
        `SELECT webhooks.id, request_id, owner, webhook_url, label, state, webhooks.created_at, attempts
         FROM webhooks JOIN requests ON requests.id = request_id WHERE webhooks.id IN (${due})
         ORDER BY due_at, webhooks.id`,
      ).all({ now, limit }) as unknown as WebhookRow[];
      const hold = prepare('UPDATE webhooks SET due_at = ? WHERE id = ?');
      for (const { id } of rows) hold.run(now + holdMs, id);
      return rows.map(asWebhook);
    });
  }

  async retry(id: string, { afterMs }: { afterMs: number }): Promise<void> {
    await this.#database.run('UPDATE webhooks SET attempts = attempts + 1, due_at = :at WHERE id = :id', {
      id,
      at: this.#now() + afterMs,
    });
  }

  async remove(id: string): Promise<void> {
    await this.#database.run('DELETE FROM webhooks WHERE id = :id', { id });
  }
}
