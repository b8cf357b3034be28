import type { Emotion } from './emotions.ts';

/** One recording: its true emotion and the probabilities of one model. */
export interface LabelledPrediction {
  readonly truth: Emotion;
  readonly probabilities: Readonly<Record<string, number>>;
}

/** One bin of confidence: number of answers, their mean confidence and their accuracy. */
export interface ConfidenceBin {
  readonly count: number;
  readonly confidence: number;
  readonly accuracy: number;
}

export interface Scores {
  readonly recordings: number;
  /** Unweighted average recall, over the emotions that occur. */
  readonly uar: number;
  readonly accuracy: number;
  /** Expected calibration error, ten bins. */
  readonly ece: number;
  /** Mean confidence minus accuracy. */
  readonly overconfidence: number;
  readonly emotions: readonly string[];
  /** confusion[i][j]: recordings of emotion i classified as emotion j. */
  readonly confusion: readonly (readonly number[])[];
  readonly reliability: readonly ConfidenceBin[];
}

const BINS = 10;

/** Scores of one model. Recordings of emotions that it does not know are left out. */
export function score(emotions: readonly string[], recordings: readonly LabelledPrediction[]): Scores {
  const answers = recordings
    .filter(({ truth }) => emotions.includes(truth))
    .map(({ truth, probabilities }) => {
      const shares = emotions.map((emotion) => probabilities[emotion] ?? 0);
      const confidence = Math.max(...shares);
      return { truth: emotions.indexOf(truth), predicted: shares.indexOf(confidence), confidence };
    });
  const confusion = emotions.map((_, truth) =>
    emotions.map(
      (_, predicted) => answers.filter((a) => a.truth === truth && a.predicted === predicted).length,
    ),
  );
  const recalls = confusion
    .map((row, i) => ({ right: row[i] ?? 0, count: sum(row) }))
    .filter(({ count }) => count > 0)
    .map(({ right, count }) => right / count);
  const graded = answers.map(({ truth, predicted, confidence }) => ({
    confidence,
    right: Number(truth === predicted),
  }));
  const reliability = bins(graded);
  return {
    recordings: answers.length,
    uar: mean(recalls),
    accuracy: mean(graded.map(({ right }) => right)),
    ece:
      sum(reliability.map(({ count, confidence, accuracy }) => count * Math.abs(confidence - accuracy))) /
      Math.max(1, answers.length),
    overconfidence: mean(graded.map(({ confidence, right }) => confidence - right)),
    emotions,
    confusion,
    reliability,
  };
}

function bins(graded: readonly { confidence: number; right: number }[]): ConfidenceBin[] {
  const place = (confidence: number) => Math.min(BINS - 1, Math.floor(confidence * BINS));
  return Array.from({ length: BINS }, (_, bin) => {
    const inside = graded.filter(({ confidence }) => place(confidence) === bin);
    return {
      count: inside.length,
      confidence: mean(inside.map(({ confidence }) => confidence)),
      accuracy: mean(inside.map(({ right }) => right)),
    };
  }).filter(({ count }) => count > 0);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : sum(values) / values.length;
}
