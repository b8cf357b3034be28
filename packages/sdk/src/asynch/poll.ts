import { ASYNCH_PATHS, type PendingResult } from '@undertone/contract';
import {
  InvalidRequestIdError,
  PredictionFailedError,
  PredictionTimeoutError,
  type RequestFailedError,
} from '../errors.ts';
import { type Context, readJson } from '../http.ts';
import type { Reporter } from '../progress.ts';
import type { AsynchResult } from '../types.ts';
import { joinUrl, withoutQuery } from '../urls.ts';

/** The delays without an interval: short at first, because most recordings take only seconds. */
const PACE = { firstMs: 500, growth: 1.5, longestMs: 5_000 } as const;

export interface PollSettings {
  /** Infinity polls until the request has finished. */
  readonly maxTries: number;
  /** Undefined: grows from poll to poll. */
  readonly intervalMs: number | undefined;
  readonly details: boolean;
  readonly signal: AbortSignal | undefined;
}

/** Polls until the result is ready or the tries are used up. */
export async function pollResult(
  context: Context,
  requestId: string,
  { maxTries, intervalMs, details, signal }: PollSettings,
  reporter: Reporter,
): Promise<AsynchResult> {
  for (let tries = 1; ; tries++) {
    const response = await fetchResult(context, requestId, details, signal);
    if (response.status === 'completed') {
      reporter.report({ status: 'completed', progress: 1, requestId });
      return response;
    }
    reporter.report({ status: response.status, progress: response.progress, requestId });
    if (tries >= maxTries) throw timedOut(response, tries, intervalMs);
    await context.platform.sleep(intervalMs ?? pace(tries), signal);
  }
}

export function checkRequestId(requestId: unknown): asserts requestId is string {
  if (typeof requestId === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(requestId)) return;
  throw new InvalidRequestIdError(
    `${JSON.stringify(requestId)} is not a request_id: pass the one that asynch.upload returned.`,
    { code: 'invalid_request_id' },
  );
}

/** The error class for a refused call about an existing request. */
export function requestErrorClass({ status }: RequestFailedError) {
  if (status === 404 || status === 410) return InvalidRequestIdError;
  return status === 422 ? PredictionFailedError : undefined;
}

/** Whatever took too long, the request continues. */
export function pollErrorClass(error: RequestFailedError) {
  return error.code === 'timed_out' ? PredictionTimeoutError : requestErrorClass(error);
}

function pace(tries: number): number {
  return Math.min(PACE.longestMs, Math.round(PACE.firstMs * PACE.growth ** (tries - 1)));
}

export async function fetchResult(
  context: Context,
  requestId: string,
  details: boolean,
  signal: AbortSignal | undefined,
): Promise<AsynchResult | PendingResult> {
  const query = { request_id: requestId, details: details ? 'true' : undefined };
  const url = joinUrl(context.config.asynchUrl, ASYNCH_PATHS.prediction, query);
  const response = await context.callWithRetries('Polling for the result', { method: 'GET', url, signal });
  return readJson<AsynchResult | PendingResult>(
    response,
    withoutQuery(url),
    ({ status, emotions, progress }) =>
      status === 'completed'
        ? Array.isArray(emotions)
        : response.status === 202 && typeof progress === 'number',
  );
}

function timedOut(
  { request_id, status, progress }: PendingResult,
  tries: number,
  intervalMs: number | undefined,
) {
  const state = status === 'processing' ? `${Math.floor(progress * 100)} % done` : status;
  const every = intervalMs === undefined ? '' : `, every ${intervalMs} milliseconds`;
  const asked = `Polled ${tries} times${every}. The request continues: try again later.`;
  const message = `Not finished yet: ${state}.${tries === 1 ? '' : ` ${asked}`}`;
  return new PredictionTimeoutError(message, { code: 'timed_out', requestId: request_id });
}
