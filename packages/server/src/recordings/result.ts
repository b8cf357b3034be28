import { AudioError } from '@undertone/audio';
import type { Classifier, RecordingSource } from '@undertone/classifier';
import { ASYNCH_LIMITS, type DetailedResult } from '@undertone/contract';
import type { Metrics } from '../operators/metrics.ts';
import type { BlobStore } from '../stores/blobs.ts';
import type { Claim, Failure, Outcome, Part, RequestStore, ResultChunk } from '../stores/contracts.ts';
import { type Telemetry, withSpan } from '../telemetry/telemetry.ts';
import { writeResult } from './time-line.ts';

export interface ClassifyDependencies {
  readonly requests: RequestStore;
  readonly blobs: BlobStore;
  readonly classifier: Classifier;
  readonly metrics: Metrics;
  readonly telemetry: Telemetry;
}

interface ClassifyOptions {
  readonly signal: AbortSignal;
  readonly onProgress: (share: number) => void;
}

interface Finished {
  readonly outcome: Outcome;
  /** Of a large result, to store first. They are built one by one, as they are taken. */
  readonly chunks?: Iterable<ResultChunk>;
  /** Duration of a recording that could be read. */
  readonly seconds?: number;
}

/** Rejects only with errors that the recording did not cause; the worker then requeues the request. */
export async function classifyRequest(
  { request, failedAttempts }: Claim,
  { requests, blobs, classifier, metrics, telemetry }: ClassifyDependencies,
  options: ClassifyOptions,
): Promise<Finished> {
  const { id, owner, model, intervalSeconds: stepSeconds, channels } = request;
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
    // Threads decode and classify by turns, so both are one span.
    const prediction = await withSpan(telemetry, 'decode and inference', {}, () =>
      classifier.classifyRecording(source, { stepSeconds, channels, owner, ...options }),
    );
    metrics.observeJob((performance.now() - start) / 1000, prediction.seconds);
    const seconds = Number(prediction.seconds.toFixed(3));
    return { ...writeResult(request, prediction, classifier.weightsName), seconds };
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

/** A small stored result is two lines of JSON: the answer of `GET /prediction`, and the answer with `details=true`. */
export function answerOf(stored: string, { details }: { details: boolean }): string {
  const [plain = '', detailed = plain] = stored.split('\n');
  return details ? detailed : plain;
}

/** Parsed, for clients that expect other shapes. */
export function detailsOf(stored: string): DetailedResult {
  return JSON.parse(answerOf(stored, { details: true }));
}
