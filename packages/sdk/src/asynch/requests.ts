import { ASYNCH_PATHS, type WebhookSecret } from '@undertone/contract';
import { RequestFailedError, rethrowAs, UndertoneError } from '../errors.ts';
import { type Context, readJson } from '../http.ts';
import { ASYNCH_RETRIES, withRetries } from '../retry.ts';
import type { AsynchStatus, RequestList } from '../types.ts';
import { joinUrl, type Query, withoutQuery } from '../urls.ts';
import { fetchResult, requestErrorClass } from './poll.ts';

/** The state of a request, whether or not it has a result. */
export async function fetchStatus(
  context: Context,
  requestId: string,
  signal: AbortSignal | undefined,
): Promise<AsynchStatus> {
  try {
    const response = await rethrowAs(requestErrorClass, requestId, () =>
      fetchResult(context, requestId, false, signal),
    );
    const progress = response.status === 'completed' ? 1 : response.progress;
    return { request_id: requestId, status: response.status, progress };
  } catch (error) {
    const httpStatus = error instanceof UndertoneError ? error.status : undefined;
    const status = httpStatus === 422 ? 'failed' : httpStatus === 410 ? 'expired' : undefined;
    if (status === undefined) throw error;
    return { request_id: requestId, status, progress: 1, error: error as UndertoneError };
  }
}

/** One page of the requests. */
export async function listRequests(
  context: Context,
  query: Query,
  signal: AbortSignal | undefined,
): Promise<RequestList> {
  const url = joinUrl(context.config.asynchUrl, ASYNCH_PATHS.requests, query);
  const response = await context.callWithRetries('Listing the requests', { method: 'GET', url, signal });
  return readJson<RequestList>(response, withoutQuery(url), ({ requests }) => Array.isArray(requests));
}

export async function fetchWebhookSecret(context: Context, signal: AbortSignal | undefined): Promise<string> {
  const url = joinUrl(context.config.asynchUrl, ASYNCH_PATHS.webhookSecret);
  const response = await context.callWithRetries('Fetching the webhook secret', {
    method: 'GET',
    url,
    signal,
  });
  const isValid = ({ secret }: Record<string, unknown>) => typeof secret === 'string';
  return readJson<WebhookSecret>(response, withoutQuery(url), isValid).secret;
}

export async function deleteRequest(
  context: Context,
  requestId: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const url = joinUrl(context.config.asynchUrl, `${ASYNCH_PATHS.requests}/${requestId}`);
  const attempts = context.config.retryAttempts;
  const retries = { ...ASYNCH_RETRIES, attempts, what: 'Deleting the request', signal };
  await rethrowAs(requestErrorClass, requestId, () =>
    withRetries(context, retries, async (retry) => {
      try {
        await context.call({ method: 'DELETE', url, signal });
      } catch (error) {
        // An earlier attempt deleted it, but its response was lost.
        const isGone = error instanceof RequestFailedError && error.status === 404;
        if (retry === 0 || !isGone) throw error;
      }
    }),
  );
}
