import type { FastifyBaseLogger } from 'fastify';
import { retryLater } from './problems.ts';
import type { Caller, LedgerStore } from './stores/contracts.ts';
import { StoreUnavailableError } from './stores/errors.ts';

interface AudioHoursOptions {
  readonly ledger: LedgerStore;
  readonly logger: FastifyBaseLogger;
  readonly now?: () => number;
}

/** Other processes learn this late what was classified here. */
const SAVE_EVERY_MS = 5_000;
const FRESH_MS = 5_000;
const MAX_KNOWN = 10_000;
const HOUR_SECONDS = 3_600;

/** Hours of audio that each owner had classified in the last 24 hours, in all processes. */
export class AudioHours {
  readonly #ledger: LedgerStore;
  readonly #logger: FastifyBaseLogger;
  readonly #now: () => number;
  /** Seconds by owner that the store does not have yet. */
  #unsaved = new Map<string, number>();
  readonly #known = new Map<string, { seconds: number; readAt: number }>();
  readonly #timer: NodeJS.Timeout;

  constructor({ ledger, logger, now = Date.now }: AudioHoursOptions) {
    this.#ledger = ledger;
    this.#logger = logger;
    this.#now = now;
    this.#timer = setInterval(() => void this.save(), SAVE_EVERY_MS).unref();
  }

  add(owner: string, seconds: number): void {
    this.#unsaved.set(owner, (this.#unsaved.get(owner) ?? 0) + seconds);
  }

  /** Throws the problem when the owner has used up its hours. */
  async require({ owner, limits }: Pick<Caller, 'owner' | 'limits'>): Promise<void> {
    const limit = limits.audio_hours;
    if (limit === 0) return;
    const hours = ((await this.#saved(owner)) + (this.#unsaved.get(owner) ?? 0)) / HOUR_SECONDS;
    if (hours < limit) return;
    const used = Number(hours.toFixed(2));
    // Use is counted by the hour, so the next full hour is the first that can free some.
    const seconds = HOUR_SECONDS - ((this.#now() / 1_000) % HOUR_SECONDS);
    const detail = `${used} of ${limit} hours of audio in 24 hours are used. Try again later.`;
    throw retryLater('quota_exceeded', detail, seconds, { figures: { limit, used } });
  }

  /** While a stream is open. */
  async use(caller: Pick<Caller, 'owner' | 'limits'>, seconds: number): Promise<void> {
    this.add(caller.owner, seconds);
    await this.require(caller);
  }

  /** If the store is unavailable, the next run saves them. */
  async save(): Promise<void> {
    const seconds = this.#unsaved;
    if (seconds.size === 0) return;
    this.#unsaved = new Map();
    for (const [owner, added] of seconds) {
      const known = this.#known.get(owner);
      if (known) known.seconds += added;
    }
    try {
      await this.#ledger.addAudio(seconds);
    } catch (error) {
      for (const [owner, added] of seconds) {
        this.add(owner, added);
        const known = this.#known.get(owner);
        if (known) known.seconds -= added;
      }
      this.#logger.warn({ err: error }, 'could not record hours of audio; will retry');
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.save();
  }

  /** While the store is unavailable: what was last known. */
  async #saved(owner: string): Promise<number> {
    const known = this.#known.get(owner);
    if (known && this.#now() - known.readAt < FRESH_MS) return known.seconds;
    try {
      const seconds = await this.#ledger.audioSeconds(owner);
      this.#known.delete(owner); // moves it to the end of the map: the first is the oldest
      this.#known.set(owner, { seconds, readAt: this.#now() });
      if (this.#known.size > MAX_KNOWN) this.#known.delete(this.#known.keys().next().value ?? owner);
      return seconds;
    } catch (error) {
      if (error instanceof StoreUnavailableError) return known?.seconds ?? 0;
      throw error;
    }
  }
}
