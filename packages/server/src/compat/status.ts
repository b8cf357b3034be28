import type { StatusResult } from '@undertone/contract';
import { ownRequest, requireOutcome } from '../recordings/requests.ts';
import { detailsOf } from '../recordings/result.ts';
import type { RequestStore } from '../stores/contracts.ts';

const STATUS_NAMES = {
  uploading: 'initiated',
  queued: 'upload_completed',
  processing: 'processing',
  completed: 'completed',
  failed: 'failed',
} as const;

/** `readPrediction` for second-generation clients: always a 200, with their names for states and times. */
export async function readStatus(
  requests: RequestStore,
  id: string,
  owner: string,
  { comprehensive }: { comprehensive: boolean },
): Promise<StatusResult> {
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
  const emotions = detailsOf(outcome.result).emotions.map(
    ({ t, channel, start, end, emotion, confidence, all_predictions }) => ({
      t,
      ...(channel !== undefined && { channel }),
      timestamp: (start + end) / 2,
      start_time: start,
      end_time: end,
      emotion,
      confidence,
      ...(comprehensive && all_predictions && { all_predictions }),
    }),
  );
  return { request_id, status, emotions };
}
