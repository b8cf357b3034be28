// The text of a result: both answers of `GET /prediction`. However long the recording was, only a small piece of it is
// built at a time, so that the main thread goes on with other work in between.
import type { RecordingPrediction } from '@undertone/classifier';
import { type DetailedElement, formatTimestamp, MIN_SPEECH_SECONDS, type Segment } from '@undertone/contract';
import { resultOf } from '../prediction.ts';
import type { AsynchRequest, Outcome, ResultChunk, ResultForm } from '../stores/contracts.ts';

/** Up to 400 kB of text with all details. */
const STEPS_PER_CHUNK = 1_000;
/** A result with more steps is stored in chunks. */
const MAX_INLINE_STEPS = 500;
/** The last chunk, and no other, is this. */
export const LAST_CHUNK = '}';

type Prediction = Pick<RecordingPrediction, 'steps' | 'seconds'>;

export function writeResult(
  request: AsynchRequest,
  prediction: Prediction,
  weights: string,
): { outcome: Outcome; chunks?: Iterable<ResultChunk> } {
  const plain = () => plainText(request, prediction);
  const detailed = () => detailedText(request, prediction, weights);
  if (prediction.steps.length > MAX_INLINE_STEPS) {
    return { outcome: { chunked: true }, chunks: numbered({ plain, detailed }) };
  }
  return { outcome: { result: `${[...plain()].join('')}\n${[...detailed()].join('')}` } };
}

function* numbered(texts: Record<ResultForm, () => Iterable<string>>): Generator<ResultChunk> {
  for (const form of ['plain', 'detailed'] as const) {
    let number = 0;
    for (const text of texts[form]()) yield { form, number: number++, text };
  }
}

function plainText(request: AsynchRequest, prediction: Prediction): Generator<string> {
  function* emotions() {
    for (const elements of elementsOf(request, prediction)) {
      yield elements.map(({ t, channel, emotion, confidence }) => ({
        t,
        ...(channel !== undefined && { channel }),
        emotion,
        confidence,
      }));
    }
  }
  return jsonText({ request_id: request.id, status: 'completed' }, { emotions: emotions() });
}

function detailedText(request: AsynchRequest, prediction: Prediction, weights: string): Generator<string> {
  const joined = new Segments();
  function* emotions() {
    for (const elements of elementsOf(request, prediction)) {
      joined.add(elements);
      yield elements;
    }
  }
  const head = {
    request_id: request.id,
    status: 'completed',
    model: request.model,
    weights,
    duration_seconds: Number(prediction.seconds.toFixed(3)),
    expires_at: new Date(request.expiresAt).toISOString(),
  };
  return jsonText(head, { emotions: emotions(), segments: joined.batches() });
}

/** The JSON of an object whose lists follow its other fields, in pieces. */
function* jsonText(head: object, lists: Record<string, Iterable<readonly object[]>>): Generator<string> {
  yield JSON.stringify(head).slice(0, -1);
  for (const [name, batches] of Object.entries(lists)) {
    let opening = `,"${name}":[`;
    for (const batch of batches) {
      yield opening + JSON.stringify(batch).slice(1, -1);
      opening = ',';
    }
    yield opening === ',' ? ']' : `${opening}]`;
  }
  yield LAST_CHUNK;
}

/** The elements in a chunk of the detailed form: null when it has none, and no later one has any. */
export function parseElements(chunk: string): DetailedElement[] | null {
  return chunk.startsWith(']') ? null : JSON.parse(`[${chunk.replace(/^,("emotions":\[)?/, '')}]`);
}

function* elementsOf(request: AsynchRequest, { steps }: Prediction): Generator<DetailedElement[]> {
  for (let at = 0; at < steps.length; at += STEPS_PER_CHUNK) {
    yield steps.slice(at, at + STEPS_PER_CHUNK).map((step): DetailedElement => {
      const result = resultOf(step.models, request.model);
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
  }
}

/** Joins neighbouring steps of a channel that have the same emotion; without speech it is null. By start, then channel. */
export class Segments {
  readonly #segments: Segment[] = [];
  readonly #open = new Map<number, Segment>();

  add(elements: readonly DetailedElement[]): void {
    for (const { channel = 0, start, end, speech, speech_seconds, confidence, ...element } of elements) {
      const emotion = speech ? element.emotion : null;
      let segment = this.#open.get(channel);
      if (segment === undefined || segment.emotion !== emotion) {
        segment = { channel, start, end, emotion, confidence: 0, speech_seconds: 0 };
        this.#open.set(channel, segment);
        this.#segments.push(segment);
      }
      segment.confidence += confidence * (end - start);
      segment.speech_seconds += speech_seconds;
      segment.end = end;
    }
  }

  /** Once all elements are added. */
  *batches(): Generator<Segment[]> {
    for (let at = 0; at < this.#segments.length; at += STEPS_PER_CHUNK) {
      yield this.#segments.slice(at, at + STEPS_PER_CHUNK).map((segment) => ({
        ...segment,
        confidence: Number((segment.confidence / (segment.end - segment.start)).toFixed(4)),
        speech_seconds: Number(segment.speech_seconds.toFixed(2)),
      }));
    }
  }
}
