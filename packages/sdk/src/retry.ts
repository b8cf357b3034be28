import { copyError, RequestFailedError, ServerNotRunningError } from './errors.ts';
import type { Log } from './log.ts';
import type { Platform } from './platform/platform.ts';

/** Exponential backoff: the delay doubles with every retry. */
export const BACKOFF = { firstMs: 500, longestMs: 10_000 } as const;

/** Added to each second of Retry-After at most: clients that were refused together got the same one. */
const JITTER_MS = 200;

/** If the server asks for a longer wait, the error is thrown instead. */
export const LONGEST_RETRY_AFTER_SECONDS = 60;

export interface RetryRule {
  readonly statuses: readonly number[];
  readonly codes: readonly string[];
}

/** Asynch calls are idempotent, so every temporary failure is retried. */
export const ASYNCH_RETRIES: RetryRule = {
  statuses: [408, 425, 429, 500, 502, 503, 504],
  codes: ['connection_failed', 'timed_out', 'etag_mismatch'],
};

/** Interactive: retry only what is likely to succeed within seconds. */
export const DISCRETE_RETRIES = {
  attempts: 2,
  statuses: [429, 502, 503, 504],
  codes: ['connection_failed'],
} as const;

/** Batch: no single recording is urgent, but all should succeed in the end. */
export const MANY_RETRIES = { ...DISCRETE_RETRIES, attempts: 10 } as const;

export interface Retries extends RetryRule {
  /** Maximum number of retries. */
  readonly attempts: number;
  /** The name of the operation, for the log. */
  readonly what: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Repeats an attempt after temporary failures, until it succeeds or the retries are used up. The attempt gets the number
 * of the retry, 0 for the first attempt.
 */
export async function withRetries<T>(
  { platform, log }: { platform: Pick<Platform, 'sleep'>; log: Log },
  { attempts, what, signal, ...rule }: Retries,
  attempt: (retry: number) => Promise<T>,
): Promise<T> {
  for (let retry = 0; ; retry++) {
    try {
      return await attempt(retry);
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof RequestFailedError) || !isRetryable(error, rule)) throw error;
      const { retryAfterSeconds = 0 } = error;
      if (attempts === 0) throw error;
      if (retry >= attempts)
        throw copyError(
          error,
          `${error.message} (after ${attempts === 1 ? 'one retry' : `${attempts} retries`})`,
        );
      if (retryAfterSeconds > LONGEST_RETRY_AFTER_SECONDS) {
        const note = `not retried: the server asks to wait ${retryAfterSeconds} seconds`;
        throw copyError(error, `${error.message} (${note})`);
      }
      const delay = retryDelay(retry, Math.random(), retryAfterSeconds);
      log.warn(`${what}: ${error.message} Retry ${retry + 1} of ${attempts} in ${delay} ms.`);
      await platform.sleep(delay, signal);
    }
  }
}

/**
 * Milliseconds to wait before retry number `retry`, from 0. Jitter reduces the backoff by up to a half, or adds to
 * Retry-After if that is longer, so that clients that failed together do not retry together.
 */
export function retryDelay(retry: number, random: number, retryAfterSeconds = 0): number {
  const ceiling = Math.min(BACKOFF.longestMs, BACKOFF.firstMs * 2 ** retry);
  return Math.round(Math.max(ceiling * (0.5 + random / 2), retryAfterSeconds * (1000 + JITTER_MS * random)));
}

/** The seconds of a Retry-After header, which contains seconds or a date. */
export function parseRetryAfter(header: string | null, now: number): number | undefined {
  if (header === null || header.trim() === '') return undefined;
  if (/^\s*\d+\s*$/.test(header)) return Number(header);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - now) / 1000));
}

/** Whether the same call can succeed later. */
export function isRetryable(error: RequestFailedError, { statuses, codes }: RetryRule): boolean {
  if (error instanceof ServerNotRunningError) return false;
  // A call with the same Idempotency-Key is still running.
  if (error.status === 409 && error.retryAfterSeconds !== undefined) return true;
  return statuses.includes(error.status ?? 0) || codes.includes(error.code ?? '');
}
