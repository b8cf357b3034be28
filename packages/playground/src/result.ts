import {
  type AsynchResult,
  type Emotion,
  labelOf,
  type ModelId,
  NO_SPEECH,
  type TimedStep,
  timedSteps,
  UNSURE,
} from '@undertone/contract';
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
  /** The service's own answer. */
  readonly answer: unknown;
}

export function ofClip(answer: DiscreteResult, model: ModelId, seconds: number): Result {
  const { main_emotion: emotion, confidence, all_predictions, speechSeconds: speech_seconds } = answer;
  const step = { start: 0, end: seconds, emotion, confidence, speech_seconds, all_predictions };
  return { from: 'discrete', model, seconds, channels: 1, steps: [step], answer };
}

export function ofRecording(answer: AsynchResult, model: ModelId, decodedSeconds = 0): Result {
  const steps = timedSteps(answer);
  const seconds = (answer.duration_seconds ?? decodedSeconds) || (steps.at(-1)?.end ?? 0);
  const channels = steps.reduce((most, { channel = 0 }) => Math.max(most, channel), 0) + 1;
  return { from: 'asynch', model, seconds, channels, steps, requestId: answer.request_id, answer };
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

/** The result in one line. */
export function summary({ from, steps }: Pick<Result, 'from' | 'steps'>): string {
  const [only] = steps;
  if (only === undefined) return 'no result';
  if (from === 'discrete' || steps.length === 1) {
    const text = describe(only);
    return text === NO_SPEECH ? text : `${text}, ${percent(only.confidence)}`;
  }
  const shares = sharesOf(steps, (step) => (labelOf(step) === NO_SPEECH ? NO_SPEECH : step.emotion));
  const [[most, share] = ['', 0]] = shares;
  return `mostly ${most}, ${Math.round(share * 100)} % of the time`;
}

/** The share of time of each name, the largest first. */
export function sharesOf<Name extends string>(
  steps: readonly TimedStep[],
  nameOf: (step: TimedStep) => Name,
): [Name, number][] {
  const seconds = (own: readonly TimedStep[]) => own.reduce((sum, { start, end }) => sum + end - start, 0);
  const total = seconds(steps) || 1;
  return [...Map.groupBy(steps, nameOf)]
    .map(([name, own]): [Name, number] => [name, seconds(own) / total])
    .toSorted(([, a], [, b]) => b - a);
}

/** A step as text, for tables and screen readers. */
export function describe(step: TimedStep): string {
  const label = labelOf(step);
  return label === UNSURE ? `${step.emotion} (${UNSURE})` : label;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

/** Emotions by probability, the highest first. */
export function ranked(all: Partial<Record<Emotion, number>>): [Emotion, number][] {
  return (Object.entries(all) as [Emotion, number][]).toSorted(([, a], [, b]) => b - a);
}
