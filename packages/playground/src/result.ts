import { type AsynchResult, type ModelId, parseTimestamp } from '@undertone/contract';
import type { DiscreteResult, StreamPrediction } from '@undertone/sdk';
import type { Step } from './emotions.ts';

/** An answer of the service, of whichever interface, as the page shows it. */
export interface Result {
  readonly from: 'discrete' | 'asynch' | 'stream';
  readonly model: ModelId;
  readonly seconds: number;
  readonly channels: number;
  readonly steps: readonly Step[];
  /** Named only where the server keeps something. */
  readonly requestId?: string;
  /** As the service answered. */
  readonly answer: unknown;
}

export function ofClip(answer: DiscreteResult, model: ModelId, seconds: number): Result {
  const { main_emotion: emotion, confidence, all_predictions: all, speechSeconds } = answer;
  const step = { channel: 0, start: 0, end: seconds, emotion, confidence, speechSeconds, all };
  return { from: 'discrete', model, seconds, channels: 1, steps: [step], answer };
}

const STEP_SECONDS = 5;

export function ofRecording(answer: AsynchResult, model: ModelId, seconds: number | undefined): Result {
  const { emotions, duration_seconds, request_id } = answer;
  const starts = emotions.map(({ t, start }) => start ?? parseTimestamp(t));
  const step = starts.find((start) => start > 0) ?? STEP_SECONDS;
  const whole = duration_seconds ?? seconds ?? (starts.at(-1) ?? 0) + step;
  const steps = emotions.map(
    ({ emotion, confidence, channel = 0, end, speech_seconds, all_predictions }, i) => {
      const start = starts[i] ?? 0;
      return {
        ...{ channel, start, end: end ?? Math.min(start + step, whole), emotion, confidence },
        ...{ speechSeconds: speech_seconds, all: all_predictions },
      };
    },
  );
  const channels = steps.reduce((most, { channel }) => Math.max(most, channel), 0) + 1;
  return { from: 'asynch', model, seconds: whole, channels, steps, requestId: request_id, answer };
}

/** Windows overlap: what a prediction adds is what came since the one before it. */
export function ofStream(predictions: readonly StreamPrediction[], model: ModelId, seconds: number): Result {
  const steps = predictions.map((prediction, i) => {
    const { channel, start, end, main_emotion, confidence, all_predictions, speech_seconds } = prediction;
    const from = Math.max(start, predictions[i - 1]?.end ?? 0);
    return {
      ...{ channel, start: from, end, emotion: main_emotion, confidence },
      ...{ speechSeconds: speech_seconds, all: all_predictions },
    };
  });
  return { from: 'stream', model, seconds, channels: 1, steps, answer: { predictions } };
}
