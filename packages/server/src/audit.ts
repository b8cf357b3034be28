import type { FastifyBaseLogger } from 'fastify';
import type { KeyStore } from './stores/contracts.ts';
import { StoreUnavailableError } from './stores/errors.ts';

/** What happened. These names are documented: dashboards and alerts may use them. */
type AuditEvent =
  | 'key.created'
  | 'key.limited'
  | 'key.revoked'
  | 'key.refused'
  | 'request.deleted'
  | 'webhook.given_up';

/** Writes one line of the audit log: who did what to what, by identifiers alone. Never a key, audio or a result. */
export function audit(
  logger: FastifyBaseLogger,
  event: AuditEvent,
  fields: object,
  level: 'info' | 'warn' = 'info',
): void {
  logger[level]({ audit: true, event, ...fields }, event);
}

/** The owner as logs and metrics may show it: that of SERVICE_API_KEY is derived from the key. */
export function shownOwner(owner: string): string {
  return /^env_[0-9a-f]{12}$/.test(owner) ? 'env' : owner;
}

interface KeyEventLogOptions {
  readonly keys: KeyStore;
  readonly logger: FastifyBaseLogger;
}

const POLL_MS = 5_000;

/** The command line changes keys in the store, where it notes each change; one server writes it to the audit log. */
export class KeyEventLog {
  readonly #options: KeyEventLogOptions;
  readonly #timer: NodeJS.Timeout;

  constructor(options: KeyEventLogOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.run(), POLL_MS).unref();
  }

  async run(): Promise<void> {
    const { keys, logger } = this.#options;
    try {
      for (const { change, at, ...event } of await keys.takeEvents()) {
        audit(logger, `key.${change}`, { ...event, at: new Date(at).toISOString() });
      }
    } catch (error) {
      // The recording worker logs an unavailable store. The next run reads them.
      if (error instanceof StoreUnavailableError) return;
      logger.error({ err: error }, 'changes of keys could not be read for the audit log; will retry');
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.run();
  }
}
