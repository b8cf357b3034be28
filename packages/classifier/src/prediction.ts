/** Window lengths that the graphs accept. */
export const MIN_WINDOW_SECONDS = 1;
export const MAX_WINDOW_SECONDS = 10;

/** Model id -> emotion -> calibrated probability. */
export type Models = Record<string, Record<string, number>>;

export interface Prediction {
  models: Models;
  speechSeconds: number;
  timings: { queueMs: number; inferenceMs: number };
}

export interface ClipPrediction extends Prediction {
  seconds: number;
  /** Sample rate of the recording as received. */
  sampleRate: number;
  timings: { decodeMs: number; queueMs: number; inferenceMs: number };
}
