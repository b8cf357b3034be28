import type { RecordingPrediction } from '@undertone/classifier';
import {
  type AsynchResult,
  type DetailedElement,
  type DetailedResult,
  formatTimestamp,
  MIN_SPEECH_SECONDS,
  parseTimestamp,
  type Segment,
} from '@undertone/contract';
import { toResult } from '../prediction.ts';
import type { AsynchRequest } from '../stores/contracts.ts';

/**
 * What is stored of a finished request is a text of two lines: the answer of `GET /prediction`, and the same with
 * `details=true`. Both are sent as they are. Results stored before version 2.1 have the first line alone.
 */
export function writeResult(
  request: AsynchRequest,
  { steps, seconds }: Pick<RecordingPrediction, 'steps' | 'seconds'>,
  weights: string,
): string {
  const { id: request_id, model } = request;
  const emotions = steps.map((step): DetailedElement => {
    const heard = toResult(step.models[model] as Record<string, number>);
    const speech_seconds = Number(step.speechSeconds.toFixed(2));
    return {
      t: formatTimestamp(step.startSeconds),
      ...(request.channels === 'separate' && { channel: step.channel }),
      emotion: heard.main_emotion,
      confidence: heard.confidence,
      start: step.startSeconds,
      end: Number(step.endSeconds.toFixed(3)),
      speech_seconds,
      speech: speech_seconds >= MIN_SPEECH_SECONDS,
      all_predictions: heard.all_predictions,
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

/** The text of the answer: neither parsed nor written again, however long the time line is. */
export function answerOf(stored: string, request: AsynchRequest, { details }: { details: boolean }): string {
  const end = stored.indexOf('\n');
  if (!details) return end < 0 ? stored : stored.slice(0, end);
  return end < 0 ? JSON.stringify(detailsOf(stored, request)) : stored.slice(end + 1);
}

/** The answer with all details, to be told in other words. */
export function detailsOf(stored: string, request: AsynchRequest): DetailedResult {
  const end = stored.indexOf('\n');
  return end < 0 ? completed(JSON.parse(stored), request) : JSON.parse(stored.slice(end + 1));
}

/** An answer that was stored before version 2.1. How much of a step is speech was not kept then. */
function completed(
  answer: AsynchResult,
  { model, intervalSeconds, expiresAt }: AsynchRequest,
): DetailedResult {
  const emotions = answer.emotions.map((element) => {
    const start = parseTimestamp(element.t);
    const end = start + intervalSeconds;
    return { ...element, start, end, speech_seconds: intervalSeconds, speech: true } as DetailedElement;
  });
  return {
    ...answer,
    model,
    weights: 'unknown',
    duration_seconds: emotions.at(-1)?.end ?? 0,
    expires_at: new Date(expiresAt).toISOString(),
    emotions,
    segments: segmentsOf(emotions),
  };
}

/** Neighbouring steps of a channel with one emotion, joined; steps without speech have none. By start, then channel. */
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
