import { API_KEY_HEADER, ASYNCH_PATHS, type CompleteResult } from '@undertone/contract';
import { type Context, readJson } from '../http.ts';
import type { AudioSource } from '../platform/platform.ts';
import type { Reporter } from '../progress.ts';
import { PiecePool } from '../source.ts';
import type { RecordingOptions } from '../types.ts';
import { joinUrl, withoutQuery } from '../urls.ts';
import { idempotencyKey, planParts, recordingQuery } from './open.ts';
import { type Part, sendPart } from './part.ts';

export interface SubmitSettings {
  readonly recording: RecordingOptions;
  readonly maxRetries: number;
  readonly signal: AbortSignal | undefined;
}

/** Sends a recording in one call, which cannot be resumed. Returns the request ID. */
export async function submitSource(
  context: Context,
  source: AudioSource,
  { recording, maxRetries, signal }: SubmitSettings,
  reporter: Reporter,
): Promise<string> {
  const [whole] = planParts(source.size, source.size) as [Part];
  const { asynchUrl, apiKey } = context.config;
  const url = joinUrl(asynchUrl, ASYNCH_PATHS.requests, recordingQuery(source.name, recording));
  const totalBytes = source.size;
  const { response } = await sendPart(context, {
    source,
    part: whole,
    url,
    method: 'POST',
    headers: { [API_KEY_HEADER]: apiKey, ...idempotencyKey() },
    maxRetries,
    signal: signal ?? new AbortController().signal,
    pool: new PiecePool(),
    onSent: (sentBytes) =>
      reporter.report({ status: 'uploading', progress: sentBytes / totalBytes, sentBytes, totalBytes }),
  });
  const isValid = ({ request_id }: Record<string, unknown>) => typeof request_id === 'string';
  return readJson<CompleteResult>(response, withoutQuery(url), isValid).request_id;
}
