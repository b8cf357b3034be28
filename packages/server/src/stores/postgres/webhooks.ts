import { asWebhook, type Webhook, type WebhookRow, type WebhookStore } from '../webhook-store.ts';
import type { PostgresDatabase } from './database.ts';

export class PostgresWebhookStore implements WebhookStore {
  readonly #database: PostgresDatabase;

  constructor(database: PostgresDatabase) {
    this.#database = database;
  }

  async claim({ limit, holdMs }: { limit: number; holdMs: number }): Promise<Webhook[]> {
    const rows = await this.#database.all<WebhookRow>(
      `WITH due AS (
         SELECT id FROM webhooks WHERE due_at <= :now ORDER BY due_at, id LIMIT :limit FOR UPDATE SKIP LOCKED)
       UPDATE webhooks SET due_at = :now + :holdMs::bigint FROM due, requests
       WHERE webhooks.id = due.id AND requests.id = webhooks.request_id
       RETURNING webhooks.id, request_id, owner, webhook_url, label, state, webhooks.created_at, attempts`,
      { limit, holdMs },
    );
    return rows.map(asWebhook);
  }

  async retry(id: string, { afterMs }: { afterMs: number }): Promise<void> {
    await this.#database.run(
      'UPDATE webhooks SET attempts = attempts + 1, due_at = :now + :afterMs::bigint WHERE id = :id',
      { id, afterMs },
    );
  }

  async remove(id: string): Promise<void> {
    await this.#database.run('DELETE FROM webhooks WHERE id = :id', { id });
  }
}
