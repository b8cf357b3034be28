/**
 * Webhooks that are still to be delivered. One is made by `RequestStore.finish`, in its transaction, and goes with its
 * request when that is deleted or expires.
 */
export interface Webhook {
  /** The same with every attempt, so that receivers can tell one that came twice. */
  readonly id: string;
  readonly requestId: string;
  readonly owner: string;
  readonly url: string;
  readonly label: string | null;
  readonly status: 'completed' | 'failed';
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** That failed. */
  readonly attempts: number;
}

/** Every method rejects with StoreUnavailableError, within a second, while the store cannot do it. */
export interface WebhookStore {
  /**
   * Those that are due, for one process. Nobody else gets them for `holdMs`: when nothing was heard of one by then, its
   * sender has died, and it is due again.
   */
  claim(options: { limit: number; holdMs: number }): Promise<Webhook[]>;
  /** It failed: due again after so long. */
  retry(id: string, options: { afterMs: number }): Promise<void>;
  /** It was delivered, or given up. */
  remove(id: string): Promise<void>;
}

/** As both databases give it. */
export interface WebhookRow {
  id: string;
  request_id: string;
  owner: string;
  webhook_url: string;
  label: string | null;
  state: 'completed' | 'failed';
  created_at: number;
  attempts: number;
}

export function asWebhook(row: WebhookRow): Webhook {
  return {
    id: row.id,
    requestId: row.request_id,
    owner: row.owner,
    url: row.webhook_url,
    label: row.label,
    status: row.state,
    createdAt: row.created_at,
    attempts: row.attempts,
  };
}
