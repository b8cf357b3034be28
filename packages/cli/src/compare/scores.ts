import type { Emotion } from '@undertone/contract';

/** One recording: what it was meant to be, and what one model says about it. */
export interface Judged {
  readonly meant: Emotion;
  readonly said: Readonly<Record<string, number>>;
}

/** One bin of confidence: how many answers, how sure they were on average, how many of them were right. */
export interface Bin {
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
  /** Mean confidence minus accuracy: above zero where the model is too sure of itself. */
  readonly overconfidence: number;
  readonly emotions: readonly string[];
  /** confusion[i][j]: recordings of emotion i answered as emotion j. */
  readonly confusion: readonly (readonly number[])[];
  readonly reliability: readonly Bin[];
}

const BINS = 10;

/** How well one model did. Recordings of an emotion that it does not know are left out. */
export function score(emotions: readonly string[], judged: readonly Judged[]): Scores {
  const answers = judged
    .filter(({ meant }) => emotions.includes(meant))
    .map(({ meant, said }) => {
      const shares = emotions.map((emotion) => said[emotion] ?? 0);
      const confidence = Math.max(...shares);
      return { meant: emotions.indexOf(meant), answered: shares.indexOf(confidence), confidence };
    });
  const confusion = emotions.map((_, meant) =>
    emotions.map((_, answered) => answers.filter((a) => a.meant === meant && a.answered === answered).length),
  );
  const recalls = confusion
    .map((row, i) => ({ right: row[i] ?? 0, count: sum(row) }))
    .filter(({ count }) => count > 0)
    .map(({ right, count }) => right / count);
  const graded = answers.map(({ meant, answered, confidence }) => ({
    confidence,
    right: Number(meant === answered),
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

function bins(graded: readonly { confidence: number; right: number }[]): Bin[] {
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
