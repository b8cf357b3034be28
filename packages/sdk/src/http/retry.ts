import { Failure } from '../failure.ts';
import type { Log } from '../log.ts';
import type { Platform } from '../platform/platform.ts';

/** The first wait, doubled with every retry up to the longest one. */
export const BACKOFF = { firstMs: 500, longestMs: 10_000 } as const;

/** A service that wants to be left alone for longer than this is not waited for. */
export const LONGEST_RETRY_AFTER_SECONDS = 60;

const RETRYABLE_STATUSES: readonly number[] = [408, 425, 429, 500, 502, 503, 504];

export function isRetryableStatus(status: number): boolean {
  return RETRYABLE_STATUSES.includes(status);
}

/**
 * Milliseconds to wait before retry number `retry` (the first is 0). The wait is drawn from its upper
 * half, so that clients that failed together do not come back together, and never undercuts Retry-After.
 */
export function retryDelay(retry: number, random: number, retryAfterSeconds = 0): number {
  const ceiling = Math.min(BACKOFF.longestMs, BACKOFF.firstMs * 2 ** retry);
  return Math.max(Math.round(ceiling * (0.5 + random / 2)), retryAfterSeconds * 1000);
}

/** Seconds asked for by a Retry-After header, which holds seconds or a date. */
export function parseRetryAfter(header: string | null, now: number): number | undefined {
  if (header === null || header.trim() === '') return undefined;
  if (/^\s*\d+\s*$/.test(header)) return Number(header);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - now) / 1000));
}

export interface Retries {
  /** How often a failed attempt is made again. */
  readonly attempts: number;
  /** What is being tried, for the log. */
  readonly what: string;
  readonly signal?: AbortSignal | undefined;
}

/** Makes an attempt, and again after a retryable failure, until it succeeds or the retries are used up. */
export async function withRetries<T>(
  { platform, log }: { platform: Platform; log: Log },
  { attempts, what, signal }: Retries,
  attempt: () => Promise<T>,
): Promise<T> {
  for (let retry = 0; ; retry++) {
    try {
      return await attempt();
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof Failure) || !error.retryable) throw error;
      if (retry >= attempts) throw attempts > 0 ? usedUp(error, attempts) : error;
      const { retryAfterSeconds } = error.details;
      if ((retryAfterSeconds ?? 0) > LONGEST_RETRY_AFTER_SECONDS) throw error;
      const delay = retryDelay(retry, Math.random(), retryAfterSeconds);
      log.warn(`${what}: ${error.message} Retry ${retry + 1} of ${attempts} in ${delay} ms.`);
      await platform.sleep(delay, signal);
    }
  }
}

function usedUp(failure: Failure, retries: number): Failure {
  const times = retries === 1 ? 'one retry' : `${retries} retries`;
  return new Failure(`${failure.message} (after ${times})`, failure.details);
}
