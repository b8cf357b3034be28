import { untilAborted } from './abort.ts';
import { UndertoneError } from './errors.ts';
import type { Platform } from './platform/platform.ts';

const FIRST_LIMIT = 4;

/** The limit grows this much slower where the server was too busy before. */
const CAUTION = 8;

/**
 * The pace of concurrent calls (additive increase, multiplicative decrease): a busy server (503) halves the number of
 * calls in flight, and each round of successes raises it by one. A call that has to wait gives its place to another;
 * when there is only one place left, or the key has reached its rate limit (429), all calls wait.
 */
export class Pace {
  readonly #platform: Pick<Platform, 'sleep'>;
  readonly #most: number;
  #limit: number;
  #inFlight = 0;
  /** Calls sent before the last decrease say nothing about the new limit. */
  #decreases = 0;
  /** The limit at the last decrease. */
  #tooMany = Number.POSITIVE_INFINITY;
  #isRateLimited = false;
  /** Settles when all pauses are over. */
  #paused: Promise<unknown> = Promise.resolve();
  readonly #waiting: (() => void)[] = [];

  constructor(platform: Pick<Platform, 'sleep'>, most: number) {
    this.#platform = platform;
    this.#most = most;
    this.#limit = Math.min(most, FIRST_LIMIT);
  }

  /** How many calls may be in flight now. */
  get limit(): number {
    return Math.floor(this.#limit);
  }

  async run<T>(signal: AbortSignal | undefined, call: () => Promise<T>): Promise<T> {
    await this.#enter(signal);
    const decreases = this.#decreases;
    try {
      const result = await call();
      this.#increase();
      return result;
    } catch (error) {
      const status = error instanceof UndertoneError ? error.status : undefined;
      if (status === 429) this.#isRateLimited = true;
      if (status === 503 && decreases === this.#decreases) this.#decrease();
      throw error;
    } finally {
      this.#inFlight--;
      this.#wake();
    }
  }

  /** The delay before a retry. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    const pause = this.#platform.sleep(milliseconds, signal);
    if (this.#isRateLimited || this.limit === 1) this.#paused = Promise.allSettled([this.#paused, pause]);
    return pause;
  }

  async #enter(signal: AbortSignal | undefined): Promise<void> {
    for (;;) {
      await untilAborted(this.#paused, signal);
      if (this.#inFlight < this.limit) break;
      await untilAborted(new Promise<void>((resolve) => this.#waiting.push(resolve)), signal);
    }
    this.#inFlight++;
  }

  #increase(): void {
    const perRound = this.#limit < this.#tooMany - 1 ? 1 : 1 / CAUTION;
    this.#limit = Math.min(this.#most, this.#limit + (this.#decreases === 0 ? 1 : perRound / this.#limit));
    this.#isRateLimited = false;
  }

  #decrease(): void {
    this.#tooMany = this.#limit;
    this.#limit = Math.max(1, this.#limit / 2);
    this.#decreases++;
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
