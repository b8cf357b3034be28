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
