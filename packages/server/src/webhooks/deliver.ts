import { setTimeout as sleep } from 'node:timers/promises';
import { WEBHOOK_RETRY_SECONDS } from '@undertone/contract';
import type { FastifyBaseLogger } from 'fastify';
import type { AsynchMetrics } from '../recordings/metrics.ts';
import type { Webhook, WebhookStore } from '../stores/contracts.ts';
import { StoreUnavailableError } from '../stores/errors.ts';
import type { Secrets } from '../stores/signing.ts';
import { type Resolve, sendWebhook } from './send.ts';

export interface WebhookTimes {
  /** How long a receiver has to answer. */
  readonly timeoutMs: number;
  /** Longer than that: after it, whoever sent one has died, and it is sent again. */
  readonly holdMs: number;
  /** How often to look for what is due. */
  readonly pollMs: number;
  /** After each attempt that failed. */
  readonly retryMs: readonly number[];
}

const TIMES: WebhookTimes = {
  timeoutMs: 15_000,
  holdMs: 30_000,
  pollMs: 1_000,
  retryMs: WEBHOOK_RETRY_SECONDS.map((seconds) => seconds * 1000),
};

const AT_ONCE = 32;

interface WebhooksOptions {
  readonly store: WebhookStore;
  readonly presigner: Secrets;
  readonly allowPrivate: boolean;
  readonly metrics: AsynchMetrics;
  readonly logger: FastifyBaseLogger;
  readonly times?: Partial<WebhookTimes>;
  readonly resolve?: Resolve;
}

/**
 * Sends what is due in the store, many at a time. What was not delivered is sent again with growing pauses, seven times in
 * all. A crash loses nothing: what was being sent is due again a little later, under the same id.
 */
export class Webhooks {
  readonly #options: WebhooksOptions;
  readonly #times: WebhookTimes;
  readonly #stopping = new AbortController();
  readonly #sending = new Set<Promise<void>>();
  #wakeUp = Promise.withResolvers<void>();
  #loop: Promise<void> | undefined;

  constructor(options: WebhooksOptions) {
    this.#options = options;
    this.#times = { ...TIMES, ...options.times };
  }

  /** What webhooks to this owner are signed with, as receivers are told it. */
  secretOf(owner: string): string {
    return `whsec_${this.#secret(owner).toString('base64')}`;
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** A request is over: look now. */
  wake(): void {
    this.#wakeUp.resolve();
    this.#wakeUp = Promise.withResolvers();
  }

  /** Breaks off what is being sent; it is sent again after the next start. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.wake();
    await this.#loop;
    await Promise.all(this.#sending);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    const { holdMs, pollMs } = this.#times;
    while (!signal.aborted) {
      const woken = this.#wakeUp.promise;
      const due = await this.#claim(AT_ONCE - this.#sending.size, holdMs);
      for (const webhook of due) {
        const task = this.#deliver(webhook).finally(() => this.#sending.delete(task));
        this.#sending.add(task);
      }
      const pause = sleep(pollMs, undefined, { signal, ref: false }).catch(() => undefined);
      const full = this.#sending.size >= AT_ONCE;
      await (full ? Promise.race(this.#sending) : Promise.race([woken, pause]));
    }
  }

  async #claim(limit: number, holdMs: number): Promise<Webhook[]> {
    try {
      return await this.#options.store.claim({ limit, holdMs });
    } catch (error) {
      // While the store is away there is nothing to send; whoever needs it for more says so in the log.
      if (!(error instanceof StoreUnavailableError)) {
        this.#options.logger.error({ err: error }, 'webhooks could not be looked for; trying again');
      }
      return [];
    }
  }

  async #deliver(webhook: Webhook): Promise<void> {
    const { store, allowPrivate, metrics, logger, resolve } = this.#options;
    const { id, owner, requestId, attempts } = webhook;
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(this.#times.timeoutMs)]);
    const secret = this.#secret(owner);
    try {
      await sendWebhook(webhook, { secret, allowPrivate, signal, ...(resolve && { resolve }) });
      metrics.webhooks.inc({ outcome: 'delivered' });
      await this.#note(() => store.remove(id));
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      const afterMs = this.#times.retryMs[attempts];
      const outcome = afterMs === undefined ? 'given_up' : 'failed';
      metrics.webhooks.inc({ outcome });
      // Neither the URL, which may have secrets in it, nor anything the receiver said.
      const about = { asynch_request: requestId, attempt: attempts + 1, why: (error as Error).message };
      logger.warn(about, afterMs === undefined ? 'a webhook was given up' : 'a webhook was not delivered');
      await this.#note(() => (afterMs === undefined ? store.remove(id) : store.retry(id, { afterMs })));
    }
  }

  /** What cannot be noted now is sent once more: receivers know it by its id. */
  async #note(step: () => Promise<void>): Promise<void> {
    await step().catch((error: unknown) => {
      if (!(error instanceof StoreUnavailableError)) this.#options.logger.error({ err: error }, 'a webhook');
    });
  }

  #secret(owner: string): Buffer {
    return this.#options.presigner.derive(`webhooks of ${owner}`);
  }
}
