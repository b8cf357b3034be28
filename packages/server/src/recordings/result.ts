import { AudioError } from '@undertone/audio';
import type { Classifier, RecordingPrediction, RecordingSource } from '@undertone/classifier';
import {
  ASYNCH_LIMITS,
  type AsynchResult,
  type DetailedElement,
  type DetailedResult,
  formatTimestamp,
  MIN_SPEECH_SECONDS,
  type Segment,
} from '@undertone/contract';
import type { Metrics } from '../operators/metrics.ts';
import { resultOf } from '../prediction.ts';
import type { BlobStore } from '../stores/blobs.ts';
import type { AsynchRequest, Claim, Failure, Outcome, Part, RequestStore } from '../stores/contracts.ts';

export interface ClassifyDependencies {
  readonly requests: RequestStore;
  readonly blobs: BlobStore;
  readonly classifier: Classifier;
  readonly metrics: Metrics;
}

interface ClassifyOptions {
  readonly signal: AbortSignal;
  readonly onProgress: (share: number) => void;
}

interface Finished {
  readonly outcome: Outcome;
  /** Duration of a recording that could be read. */
  readonly seconds?: number;
}

/** Rejects only with errors that the recording did not cause; the worker then requeues the request. */
export async function classifyRequest(
  { request, failedAttempts }: Claim,
  { requests, blobs, classifier, metrics }: ClassifyDependencies,
  options: ClassifyOptions,
): Promise<Finished> {
  const { id, model, intervalSeconds: stepSeconds, channels } = request;
  if (failedAttempts >= ASYNCH_LIMITS.maxAttempts) {
    const detail = `Processing failed ${failedAttempts} times. Convert the recording to WAV and try again, or contact the operator.`;
    return failed({ code: 'processing_failed', detail, figures: { attempts: failedAttempts } });
  }
  // The server may have been restarted with another catalogue since the upload.
  if (!classifier.catalog.models.some((known) => known.id === model)) {
    const detail = `This server no longer has the model ${model}.`;
    return failed({ code: 'unknown_model', detail, figures: {} });
  }
  const start = performance.now();
  try {
    const source = joinParts(blobs, id, await requests.parts(id));
    const prediction = await classifier.classifyRecording(source, { stepSeconds, channels, ...options });
    metrics.observeJob((performance.now() - start) / 1000, prediction.seconds);
    const seconds = Number(prediction.seconds.toFixed(3));
    return { outcome: { result: writeResult(request, prediction, classifier.weightsName) }, seconds };
  } catch (error) {
    if (!(error instanceof AudioError)) throw error;
    const { code, message: detail, figures } = error;
    // A failed prediction is always 422, so codes that mean another status are not used here.
    const unreadable = code === 'unsupported_media_type' || code === 'bad_request';
    return failed({ code: unreadable ? 'unreadable_audio' : code, detail, figures });
  }
}

function failed(failure: Failure): Finished {
  return { outcome: { failure } };
}

/** The parts of an upload as one recording, read in order from where they are stored. */
function joinParts(blobs: BlobStore, group: string, parts: readonly Part[]): RecordingSource {
  const size = parts.reduce((sum, { bytes }) => sum + bytes, 0);
  return {
    size,
    async *read(start = 0, end = size) {
      let partStart = 0;
      for (const { blob, bytes, etag } of parts) {
        const from = Math.max(0, start - partStart);
        const to = Math.min(bytes, end - partStart);
        if (from < to) yield* blobs.read(group, blob, { start: from, end: to, etag });
        partStart += bytes;
      }
    },
  };
}

/**
 * A stored result is two lines of JSON: the answer of `GET /prediction`, and the answer with `details=true`. Either is
 * sent as it is, never parsed or written again, however long the recording was.
 */
function writeResult(
  request: AsynchRequest,
  { steps, seconds }: Pick<RecordingPrediction, 'steps' | 'seconds'>,
  weights: string,
): string {
  const { id: request_id, model } = request;
  const emotions = steps.map((step): DetailedElement => {
    const result = resultOf(step.models, model);
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
