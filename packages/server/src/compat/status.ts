import type { DetailedElement, StatusResult } from '@undertone/contract';
import { ownRequest, readChunks, requireOutcome } from '../recordings/requests.ts';
import { detailsOf } from '../recordings/result.ts';
import { parseElements } from '../recordings/time-line.ts';
import type { RequestStore } from '../stores/contracts.ts';

const STATUS_NAMES = {
  uploading: 'initiated',
  queued: 'upload_completed',
  processing: 'processing',
  completed: 'completed',
  failed: 'failed',
} as const;

/**
 * `readPrediction` for second-generation clients: always a 200, with their names for states and times. A large result is
 * its JSON text, in pieces.
 */
export async function readStatus(
  requests: RequestStore,
  id: string,
  owner: string,
  { comprehensive }: { comprehensive: boolean },
): Promise<StatusResult | AsyncIterable<string>> {
  const request = await ownRequest(requests, id, owner);
  const { state, progress, id: request_id } = request;
  const status = STATUS_NAMES[state as keyof typeof STATUS_NAMES];
  if (state !== 'completed' && state !== 'failed') {
    return { request_id, status, progress: Number(progress.toFixed(4)) };
  }
  const outcome = await requireOutcome(requests, request_id);
  if ('failure' in outcome) {
    const { code, detail } = outcome.failure;
    return { request_id, status, error: detail, error_code: code.toUpperCase() };
  }
  const rename = (elements: readonly DetailedElement[]) =>
    elements.map((one) => toStatus(one, comprehensive));
  if ('result' in outcome) {
    return { request_id, status, emotions: rename(detailsOf(outcome.result).emotions) };
  }
  const chunks = await readChunks(requests, request_id, 'detailed');
  return statusText({ request_id, status }, chunks, rename);
}

async function* statusText(
  head: object,
  chunks: AsyncIterable<string>,
  rename: (elements: readonly DetailedElement[]) => object[],
): AsyncGenerator<string> {
  let opening = `${JSON.stringify(head).slice(0, -1)},"emotions":[`;
  let isHead = true;
  for await (const chunk of chunks) {
    const elements = isHead ? [] : parseElements(chunk);
    if (elements === null) break;
    if (!isHead) {
      yield opening + JSON.stringify(rename(elements)).slice(1, -1);
      opening = ',';
    }
    isHead = false;
  }
  yield ']}';
}

function toStatus(element: DetailedElement, comprehensive: boolean) {
  const { t, channel, start, end, emotion, confidence, all_predictions } = element;
  return {
    t,
    ...(channel !== undefined && { channel }),
    timestamp: (start + end) / 2,
    start_time: start,
    end_time: end,
    emotion,
    confidence,
    ...(comprehensive && all_predictions && { all_predictions }),
  };
}
