import { type AsynchResult, isModelId, type ModelId, type TimedStep, timedSteps } from '@undertone/contract';
import type { DiscreteResult, StreamPrediction } from '@undertone/sdk';

/** A result of any of the three interfaces, as the page shows it. */
export interface Result {
  readonly from: 'discrete' | 'asynch' | 'stream';
  readonly model: ModelId;
  readonly seconds: number;
  readonly channels: number;
  readonly steps: readonly TimedStep[];
  /** Set if the server stores the result. */
  readonly requestId?: string;
  /** When the server erases it, ISO 8601. */
  readonly expiresAt?: string;
  /** The service's own answer. */
  readonly answer: unknown;
}

/** One answer for each channel of a short recording. */
export function ofClip(answers: readonly DiscreteResult[], model: ModelId, seconds: number): Result {
  const isSeparate = answers.length > 1;
  const steps = answers.map((answer, channel) => {
    const { main_emotion: emotion, confidence, all_predictions, speechSeconds: speech_seconds } = answer;
    const step = { start: 0, end: seconds, emotion, confidence, speech_seconds, all_predictions };
    return isSeparate ? { ...step, channel } : step;
  });
  const answer = isSeparate ? { channels: answers } : answers[0];
  return { from: 'discrete', model, seconds, channels: answers.length, steps, answer };
}

export function ofRecording(answer: AsynchResult, asked: ModelId, decodedSeconds = 0): Result {
  const steps = timedSteps(answer);
  const model = isModelId(answer.model) ? answer.model : asked;
  const seconds = (answer.duration_seconds ?? decodedSeconds) || (steps.at(-1)?.end ?? 0);
  const channels = steps.reduce((most, { channel = 0 }) => Math.max(most, channel), 0) + 1;
  const { request_id: requestId, expires_at: expiresAt } = answer;
  const stored = { requestId, ...(expiresAt !== undefined && { expiresAt }) };
  return { from: 'asynch', model, seconds, channels, steps, ...stored, answer };
}

/** Windows overlap, so each step starts where the previous prediction ended. */
export function ofStream(predictions: readonly StreamPrediction[], model: ModelId, seconds: number): Result {
  const steps = predictions.map((prediction, i) => {
    const { start, end, main_emotion: emotion, confidence, all_predictions, speech_seconds } = prediction;
    const from = Math.max(start, predictions[i - 1]?.end ?? 0);
    return { start: from, end, emotion, confidence, speech_seconds, all_predictions };
  });
  return { from: 'stream', model, seconds, channels: 1, steps, answer: { predictions } };
}
