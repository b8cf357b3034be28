import type { ModelEntry } from './catalog.ts';
import type { BatchResult } from './inference-thread.ts';
import { SPEECH_OUTPUT } from './protocol.ts';

export const SAMPLE_RATE = 16_000;
export const MIN_SECONDS = 1;
export const MAX_SECONDS = 10;

export interface Prediction {
  /** Model id -> emotion -> calibrated probability. */
  models: Record<string, Record<string, number>>;
  /** How much of the window is speech. */
  speechSeconds: number;
  /** `threadMs` is the window's own share of `inferenceMs`, which is that of its whole batch. */
  timings: { queueMs: number; inferenceMs: number; threadMs: number };
}

/** Refuses what the graph cannot take, in words for whoever called. */
export function checkSamples(samples: Float32Array): void {
  const { length } = samples;
  if (length < MIN_SECONDS * SAMPLE_RATE || length > MAX_SECONDS * SAMPLE_RATE) {
    throw new RangeError(
      `A window must be ${MIN_SECONDS} to ${MAX_SECONDS} s long (${MIN_SECONDS * SAMPLE_RATE} to ${MAX_SECONDS * SAMPLE_RATE} samples at ${SAMPLE_RATE} Hz); this one has ${length} samples`,
    );
  }
  // Zero times anything finite is zero, so one pass without a branch finds NaN and infinity. Four sums, because in one
  // each addition would wait for the one before it.
  let [a, b, c, trace] = [0, 0, 0, 0];
  const last = length - (length % 4);
  for (let i = 0; i < last; i += 4) {
    a += (samples[i] as number) * 0;
    b += (samples[i + 1] as number) * 0;
    c += (samples[i + 2] as number) * 0;
    trace += (samples[i + 3] as number) * 0;
  }
  for (let i = last; i < length; i++) trace += (samples[i] as number) * 0;
  trace += a + b + c;
  if (trace !== 0)
    throw new RangeError('A window must hold finite samples; this one has NaN or infinity in it');
}

/** The columns of every output the graph must have. */
export function outputColumns(models: readonly ModelEntry[]): Record<string, number> {
  return Object.fromEntries([
    ...models.map(({ id, emotions }) => [id, emotions.length] as const),
    [SPEECH_OUTPUT, 1] as const,
  ]);
}

/** Reads one row of a batch. */
export function readPrediction(
  models: readonly ModelEntry[],
  { outputs, inferenceMs }: BatchResult,
  row: number,
  window: { samples: number; queueMs: number; batch: number },
): Prediction {
  const byModel = models.map(({ id, emotions }) => {
    const first = row * emotions.length;
    const probabilities = emotions.map((emotion, i) => [emotion, value(outputs[id], first + i)] as const);
    return [id, Object.fromEntries(probabilities)] as const;
  });
  const speech = Math.min(1, Math.max(0, value(outputs[SPEECH_OUTPUT], row)));
  return {
    models: Object.fromEntries(byModel),
    speechSeconds: (speech * window.samples) / SAMPLE_RATE,
    timings: { queueMs: window.queueMs, inferenceMs, threadMs: inferenceMs / window.batch },
  };
}

function value(data: Float32Array | undefined, index: number): number {
  const number = data?.[index];
  if (number === undefined || !Number.isFinite(number)) throw new Error('The model gave no finite number');
  return number;
}
