import { ASYNCH_PATHS, type CompleteResult, type InitiateResult } from '@undertone/contract';
import type { Context } from '../context.ts';
import { UploadFailedError } from '../errors.ts';
import { Failure, failingAs } from '../failure.ts';
import { readJson } from '../http/answer.ts';
import { joinUrl, speakable } from '../http/url.ts';
import type { Reporter } from '../progress/reporter.ts';
import type { AudioSource } from '../source/source.ts';
import type { ModelId } from '../types.ts';
import { Delivery } from './delivery.ts';
import { type Part, planParts } from './parts.ts';

/** A cancelled upload may cost the caller this much more time, no longer. */
const CANCEL_LIMIT_MS = 5_000;

export interface UploadSettings {
  readonly partSize: number;
  readonly maxRetries: number;
  readonly model: ModelId | undefined;
  readonly intervalSeconds: number | undefined;
  readonly signal: AbortSignal | undefined;
}

/**
 * Asks for addresses, sends the parts side by side, and has the service put them together. When that
 * cannot be done the service is told to forget the request. Returns the request's identifier.
 */
export async function uploadSource(
  context: Context,
  source: AudioSource,
  settings: UploadSettings,
  reporter: Reporter,
): Promise<string> {
  const parts = planParts(source.size, settings.partSize);
  const ticket = await initiate(context, source, parts.length, settings);
  const requestId = ticket.request_id;
  try {
    return await failingAs(UploadFailedError, requestId, async () => {
      const delivery = new Delivery(context, source, ticket, settings, reporter);
      await delivery.send(parts);
      await completeAll(context, delivery, parts, settings);
      context.log.info(`Request ${requestId}: ${parts.length} parts sent.`);
      return requestId;
    });
  } catch (error) {
    await cancel(context, requestId);
    throw error;
  }
}

async function initiate(
  context: Context,
  source: AudioSource,
  count: number,
  { model, intervalSeconds, signal }: UploadSettings,
): Promise<InitiateResult> {
  const url = joinUrl(context.config.asynchUrl, ASYNCH_PATHS.initiate, {
    file_name: source.name,
    part_count: count,
    model,
    interval: intervalSeconds,
  });
  const answer = await context.callPatiently('Starting the upload', { method: 'POST', url, signal });
  return readJson<InitiateResult>(
    answer,
    speakable(url),
    ({ request_id, upload_id, presigned_urls }) =>
      typeof request_id === 'string' &&
      typeof upload_id === 'string' &&
      Array.isArray(presigned_urls) &&
      presigned_urls.length === count,
  );
}

/** Completes; parts that the service names as missing or wrong are sent once more and it is asked again. */
async function completeAll(
  context: Context,
  delivery: Delivery,
  parts: readonly Part[],
  { maxRetries, signal }: UploadSettings,
): Promise<void> {
  const url = joinUrl(context.config.asynchUrl, ASYNCH_PATHS.complete);
  for (let round = 0; ; round++) {
    try {
      const body = JSON.stringify(delivery.receipt());
      const headers = { 'content-type': 'application/json' };
      const call = { method: 'POST', url, headers, body, signal } as const;
      const answer = await context.callPatiently('Completing the upload', call);
      readJson<CompleteResult>(answer, speakable(url), ({ status }) => typeof status === 'string');
      return;
    } catch (error) {
      const named = namedParts(error);
      const again = parts.filter((part) => named.has(part.number));
      if (again.length === 0 || round >= maxRetries) throw error;
      context.log.warn(`Parts ${[...named].join(', ')} did not arrive whole: sending them again.`);
      await delivery.send(again);
    }
  }
}

function namedParts(error: unknown): Set<number> {
  const problem = error instanceof Failure ? error.details.problem : undefined;
  return new Set([...(problem?.missing_parts ?? []), ...(problem?.wrong_parts ?? [])]);
}

/** As well as it goes: the request expires by itself in any case. */
async function cancel(context: Context, requestId: string): Promise<void> {
  const url = joinUrl(context.config.asynchUrl, `${ASYNCH_PATHS.requests}/${requestId}`);
  try {
    await context.call({ method: 'DELETE', url, deadline: AbortSignal.timeout(CANCEL_LIMIT_MS) });
  } catch (error) {
    context.log.warn(`Request ${requestId} could not be cancelled: ${(error as Error).message}`);
  }
}
