import { MODEL_SAMPLE_RATE } from '@undertone/audio';
import type { ModelEntry } from './catalog.ts';

/** What the graphs take. */
export const MIN_WINDOW_SECONDS = 1;
export const MAX_WINDOW_SECONDS = 10;

/** Model id -> emotion -> calibrated probability. */
export type Models = Record<string, Record<string, number>>;

export interface Prediction {
  models: Models;
  /** How much of the sound is speech. */
  speechSeconds: number;
  timings: { queueMs: number; inferenceMs: number };
}

export interface ClipPrediction extends Prediction {
  seconds: number;
  /** Of the recording as it came. */
  sampleRate: number;
  timings: { decodeMs: number; queueMs: number; inferenceMs: number };
}

/** Name of the graph's input, and of the output with the share of the window that is speech. */
export const SAMPLES_INPUT = 'samples';
export const SPEECH_OUTPUT = 'speech';

/** What a graph puts out for one window -> probabilities by name. */
export function readOutputs(
  models: readonly ModelEntry[],
  output: (name: string, columns: number) => Float32Array,
  samples: number,
): { models: Models; speechSeconds: number } {
  const byModel = models.map(({ id, emotions }) => {
    const values = output(id, emotions.length);
    return [id, Object.fromEntries(emotions.map((emotion, i) => [emotion, finite(values[i])]))] as const;
  });
  const speech = Math.min(1, Math.max(0, finite(output(SPEECH_OUTPUT, 1)[0])));
  return { models: Object.fromEntries(byModel), speechSeconds: (speech * samples) / MODEL_SAMPLE_RATE };
}

function finite(value: number | undefined): number {
  if (value === undefined || !Number.isFinite(value)) throw new Error('The model gave no finite number');
  return value;
}
