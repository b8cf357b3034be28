import type { RecordingPrediction } from '@undertone/classifier';
import {
  type AsynchResult,
  type DetailedElement,
  type DetailedResult,
  formatTimestamp,
  MIN_SPEECH_SECONDS,
  type Segment,
} from '@undertone/contract';
import { toResult } from '../prediction.ts';
import type { AsynchRequest } from '../stores/request-store.ts';

/**
 * A stored result is two lines of JSON: the answer of `GET /prediction`, and the answer with `details=true`. Either is
 * sent as it is, never parsed or written again, however long the recording was.
 */
export function writeResult(
  request: AsynchRequest,
  { steps, seconds }: Pick<RecordingPrediction, 'steps' | 'seconds'>,
  weights: string,
): string {
  const { id: request_id, model } = request;
  const emotions = steps.map((step): DetailedElement => {
    const result = toResult(step.models[model] as Record<string, number>);
    const speech_seconds = Number(step.speechSeconds.toFixed(2));
    return {
      t: formatTimestamp(step.startSeconds),
      ...(request.channels === 'separate' && { channel: step.channel }),
      emotion: result.main_emotion,
      confidence: result.confidence,
      start: step.startSeconds,
      end: Number(step.endSeconds.toFixed(3)),
      speech_seconds,
      speech: speech_seconds >= MIN_SPEECH_SECONDS,
      all_predictions: result.all_predictions,
    };
  });
  const plain: AsynchResult = {
    request_id,
    status: 'completed',
    emotions: emotions.map(({ t, channel, emotion, confidence }) => ({
      t,
      ...(channel !== undefined && { channel }),
      emotion,
      confidence,
    })),
  };
  const detailed: DetailedResult = {
    request_id,
    status: 'completed',
    model,
    weights,
    duration_seconds: Number(seconds.toFixed(3)),
    expires_at: new Date(request.expiresAt).toISOString(),
    emotions,
    segments: segmentsOf(emotions),
  };
  return `${JSON.stringify(plain)}\n${JSON.stringify(detailed)}`;
}

export function answerOf(stored: string, { details }: { details: boolean }): string {
  const [plain = '', detailed = plain] = stored.split('\n');
  return details ? detailed : plain;
}

/** Parsed, for clients that expect other shapes. */
export function detailsOf(stored: string): DetailedResult {
  return JSON.parse(answerOf(stored, { details: true }));
}

/** Joins neighbouring steps of a channel that have the same emotion; without speech it is null. By start, then channel. */
export function segmentsOf(elements: readonly DetailedElement[]): Segment[] {
  const segments: Segment[] = [];
  const open = new Map<number, Segment>();
  for (const { channel = 0, start, end, speech, speech_seconds, confidence, ...element } of elements) {
    const emotion = speech ? element.emotion : null;
    let segment = open.get(channel);
    if (segment === undefined || segment.emotion !== emotion) {
      segment = { channel, start, end, emotion, confidence: 0, speech_seconds: 0 };
      open.set(channel, segment);
      segments.push(segment);
    }
    segment.confidence += confidence * (end - start);
    segment.speech_seconds += speech_seconds;
    segment.end = end;
  }
  return segments.map((segment) => ({
    ...segment,
    confidence: Number((segment.confidence / (segment.end - segment.start)).toFixed(4)),
    speech_seconds: Number(segment.speech_seconds.toFixed(2)),
  }));
}
