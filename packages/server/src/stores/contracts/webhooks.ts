import type { Trace } from './request.ts';

/** A webhook to deliver. `finish` and `expire` of the RequestStore create it in their transaction; it is deleted with its request. */
export interface Webhook {
  /** The same for every attempt, so that receivers can recognise duplicates. */
  readonly id: string;
  readonly requestId: string;
  readonly owner: string;
  readonly url: string;
  readonly label: string | null;
  readonly status: 'completed' | 'failed' | 'expired';
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** Failed ones. */
  readonly attempts: number;
  readonly trace: Trace | null;
}

/** The webhook sender. */
export interface WebhookStore {
  /** Due webhooks, for this process alone. After `holdMs` without `retry` or `remove` they are due again. */
  claim(options: { limit: number; holdMs: number }): Promise<Webhook[]>;
  /** Delivery failed. */
  retry(id: string, options: { afterMs: number }): Promise<void>;
  /** Delivered, or given up. */
  remove(id: string): Promise<void>;
  /** Metrics: those that are not delivered yet. */
  count(): Promise<number>;
}
