import { once } from 'node:events';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { WEBHOOK_RETRY_SECONDS } from '@undertone/contract';
import type { FastifyBaseLogger } from 'fastify';
import { audit, shownOwner } from '../audit.ts';
import type { Metrics } from '../operators/metrics.ts';
import type { Webhook, WebhookStore } from '../stores/contracts.ts';
import { StoreUnavailableError } from '../stores/errors.ts';
import type { Secrets } from '../stores/signing.ts';
import { type Telemetry, withSpan } from '../telemetry/telemetry.ts';
import { outgoingTrace, traceFields } from '../trace.ts';
import { checkedLookup, DeliveryError, type Resolve, requireWebhookUrl } from './address.ts';
import { bodyOf, formatSecret, signatureHeaders } from './sign.ts';
import { OwnerTurns } from './turns.ts';

export interface WebhookTimes {
  /** Timeout of one attempt. */
  readonly timeoutMs: number;
  /** Lease of a claimed webhook, longer than `timeoutMs`: when it ends, the sender has died and another one retries. */
  readonly holdMs: number;
  readonly pollMs: number;
  /** Delay after each failed attempt. */
  readonly retryMs: readonly number[];
}

const TIMES: WebhookTimes = {
  timeoutMs: 15_000,
  holdMs: 30_000,
  pollMs: 1_000,
  retryMs: WEBHOOK_RETRY_SECONDS.map((seconds) => seconds * 1000),
};

const CLAIM_LIMIT = 128;
const TURNS = { places: 128, placesPerOwner: 4, waitingPerOwner: 256 };

interface WebhooksOptions {
  readonly store: WebhookStore;
  readonly secrets: Secrets;
  readonly allowPrivate: boolean;
  readonly metrics: Metrics;
  readonly telemetry: Telemetry;
  readonly logger: FastifyBaseLogger;
  readonly times?: Partial<WebhookTimes>;
}

/**
 * Delivers the webhooks that are due in the store, many concurrently, a few for each owner. A failed one is retried with growing delays, seven
 * attempts in all. After a crash the lease of what was being sent ends, and it is sent again under the same id.
 */
export class Webhooks {
  readonly #options: WebhooksOptions;
  readonly #times: WebhookTimes;
  readonly #stopping = new AbortController();
  readonly #sending = new Set<Promise<void>>();
  readonly #turns = new OwnerTurns(TURNS);
  #wakeUp = Promise.withResolvers<void>();
  #loop: Promise<void> | undefined;

  constructor(options: WebhooksOptions) {
    this.#options = options;
    this.#times = { ...TIMES, ...options.times };
  }

  /** The signing secret of an owner, in the form that receivers are given. */
  secretOf(owner: string): string {
    return formatSecret(this.#secret(owner));
  }

  /** Metrics: deliveries by owner. */
  inFlight(): ReadonlyMap<string, number> {
    return this.#turns.byOwner();
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** A request has finished: poll now. */
  wake(): void {
    this.#wakeUp.resolve();
    this.#wakeUp = Promise.withResolvers();
  }

  /** Aborts deliveries in flight; they are sent again after the next start. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.wake();
    await this.#loop;
    await Promise.all(this.#sending);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    const { holdMs, pollMs, timeoutMs } = this.#times;
    while (!signal.aborted) {
      const woken = this.#wakeUp.promise;
      const claimedAt = performance.now();
      const due = await this.#claim(CLAIM_LIMIT, holdMs);
      for (const webhook of due) this.#turns.add(webhook, claimedAt + holdMs - timeoutMs);
      this.#sendWaiting();
      // There may be more, of other owners.
      if (due.length === CLAIM_LIMIT) continue;
      const pause = sleep(pollMs, undefined, { signal, ref: false }).catch(() => undefined);
      await Promise.race([woken, pause]);
    }
  }

  #sendWaiting(): void {
    if (this.#stopping.signal.aborted) return;
    for (;;) {
      const webhook = this.#turns.take(performance.now());
      if (webhook === undefined) return;
      const task = this.#deliver(webhook).finally(() => {
        this.#sending.delete(task);
        this.#turns.release(webhook);
        this.#sendWaiting();
      });
      this.#sending.add(task);
    }
  }

  async #claim(limit: number, holdMs: number): Promise<Webhook[]> {
    try {
      return await this.#options.store.claim({ limit, holdMs });
    } catch (error) {
      // The recording worker logs an unavailable store.
      if (!(error instanceof StoreUnavailableError)) {
        this.#options.logger.error({ err: error }, 'webhooks could not be claimed; trying again');
      }
      return [];
    }
  }

  async #deliver(webhook: Webhook): Promise<void> {
    const { store, allowPrivate, metrics, telemetry, logger } = this.#options;
    const { id, requestId, status, attempts, trace } = webhook;
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(this.#times.timeoutMs)]);
    const context = {
      ...traceFields(trace),
      recording: requestId,
      webhook: id,
      event: `request.${status}`,
      attempt: attempts + 1,
    };
    const start = performance.now();
    const ms = () => Math.round(performance.now() - start);
    /** A result that cannot be recorded means one more delivery; receivers recognise it by its id. */
    const record = (step: Promise<void>) =>
      step.catch((error: unknown) => {
        if (error instanceof StoreUnavailableError) return;
        logger.error(
          { err: error, ...context },
          'a webhook delivery could not be recorded; sending it again',
        );
      });
    try {
      const secret = this.#secret(webhook.owner);
      const parent = trace?.traceparent;
      const attributes = { 'undertone.recording': requestId, 'undertone.attempt': attempts + 1 };
      await withSpan(telemetry, 'webhook', { kind: 'client', parent, attributes }, (span) =>
        sendWebhook(webhook, { secret, allowPrivate, signal, headers: outgoingTrace(trace, span) }),
      );
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      const afterMs = this.#times.retryMs[attempts];
      const givenUp = afterMs === undefined;
      metrics.webhooks.inc({ outcome: givenUp ? 'given_up' : 'failed' });
      const line = { ...context, why: reasonOf(error), ms: ms(), after_ms: afterMs };
      if (givenUp) {
        const { event: type, ...more } = line;
        audit(logger, 'webhook.given_up', { ...more, type, owner: shownOwner(webhook.owner) }, 'warn');
      } else {
        logger.warn(line, 'webhook not delivered; retried later');
      }
      return record(givenUp ? store.remove(id) : store.retry(id, { afterMs }));
    }
    metrics.webhooks.inc({ outcome: 'delivered' });
    logger.info({ ...context, ms: ms() }, 'webhook delivered');
    await record(store.remove(id));
  }

  #secret(owner: string): Buffer {
    return this.#options.secrets.derive(`webhooks of ${owner}`);
  }
}

interface SendOptions {
  readonly secret: Buffer;
  readonly allowPrivate: boolean;
  readonly signal: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  readonly resolve?: Resolve;
}

/** One attempt. Rejects unless the receiver answers 2xx. Redirects are not followed. */
export async function sendWebhook(
  webhook: Webhook,
  { secret, allowPrivate, signal, headers, resolve }: SendOptions,
): Promise<void> {
  const url = requireWebhookUrl(webhook.url, allowPrivate);
  const body = bodyOf(webhook);
  const request = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, {
    method: 'POST',
    agent: false,
    signal,
    lookup: checkedLookup(allowPrivate, resolve),
    headers: {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'undertone-webhooks',
      ...headers,
      ...signatureHeaders(webhook.id, body, secret),
    },
  });
  // `once` below reports errors before the response; later ones do not matter.
  request.on('error', () => undefined).end(body);
  const [response] = (await once(request, 'response', { signal })) as [IncomingMessage];
  const { statusCode = 0 } = response;
  // Status received, body ignored.
  response.on('error', () => undefined).destroy();
  if (statusCode < 200 || statusCode > 299) throw new DeliveryError(`the receiver answered ${statusCode}`);
}

/** For the log. Node's messages name the host, which may be a secret, so only their codes are used. */
function reasonOf(error: unknown): string {
  if (error instanceof DeliveryError) return error.message;
  const { name, code } = error as NodeJS.ErrnoException;
  return name === 'AbortError' ? 'timeout' : (code ?? name);
}
