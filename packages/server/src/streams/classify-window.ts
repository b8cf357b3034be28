import type { Classifier, ClipPrediction } from '@undertone/classifier';
import type { Metrics } from '../operators/metrics.ts';
import { retryLater } from '../problems.ts';
import type { StreamTimes } from './registry.ts';
import type { StreamWindow } from './windows.ts';

interface HearOptions {
  readonly classifier: Classifier;
  readonly metrics: Metrics;
  readonly times: Pick<StreamTimes, 'lagMs'>;
  readonly signal: AbortSignal;
}

/** What is in a window, channel by channel. Rejects with the problem `overloaded` when that takes too long. */
export async function hear(
  { block, newSeconds }: StreamWindow,
  channelCount: number,
  { classifier, metrics, times, signal }: HearOptions,
): Promise<ClipPrediction[]> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(tooLate(times.lagMs)), times.lagMs);
  const begun = performance.now();
  const options = { priority: 'stream', signal: AbortSignal.any([signal, late.signal]) } as const;
  const channels = Array.from({ length: channelCount }, (_, channel) => channel);
  try {
    const heard = await Promise.all(
      channels.map((channel) => classifier.classifySamples({ ...block, channel }, options)),
    );
    options.signal.throwIfAborted();
    metrics.observeWindow((performance.now() - begun) / 1_000, newSeconds * channelCount);
    return heard;
  } finally {
    clearTimeout(timer);
  }
}

function tooLate(lagMs: number) {
  const detail = `The server is busy: an answer has waited for ${lagMs / 1_000} seconds. Try again later.`;
  return retryLater('overloaded', detail, 5);
}
