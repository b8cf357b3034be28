import { ADVISED_MIN_CONFIDENCE, type Emotion } from '@undertone/contract';
import type { AsynchResult } from '@undertone/sdk';
import { barOf, COLOURS, paint } from '../bars.ts';
import { type Step, stepsOf } from './formats.ts';

/** Where there is no colour, letters tell the emotions apart. */
const LETTERS: Record<Emotion, string> = {
  angry: 'A',
  happy: 'H',
  neutral: 'N',
  sad: 'S',
  nervous: 'V',
  surprised: 'U',
  disgusted: 'D',
};

/** Steps under the advised confidence. */
const UNSURE = '·';

/** The whole recording in one line, what its signs mean, and a row for each step. */
export function drawTimeline(result: AsynchResult, columns: number): string {
  const steps = stepsOf(result);
  const strip = cells(steps, columns).map(cell).join('');
  return [strip, legend(steps), '', ...steps.map(row)].join('\n');
}

/** As many cells as fit; one that stands for several steps shows the emotion that weighs most in them. */
function cells(steps: readonly Step[], columns: number): Step[] {
  const count = Math.min(steps.length, columns);
  return Array.from({ length: count }, (_, i) => {
    const from = Math.floor((i * steps.length) / count);
    return weightiest(steps.slice(from, Math.floor(((i + 1) * steps.length) / count)));
  });
}

function weightiest(steps: readonly Step[]): Step {
  const weights = Map.groupBy(steps, ({ emotion }) => emotion);
  const [most = []] = [...weights.values()].toSorted((a, b) => weightOf(b) - weightOf(a));
  return most.reduce((best, step) => (step.confidence > best.confidence ? step : best));
}

function weightOf(steps: readonly Step[]): number {
  return steps.reduce((sum, { confidence }) => sum + confidence, 0);
}

function cell({ emotion, confidence }: Step): string {
  if (confidence < ADVISED_MIN_CONFIDENCE) return paint('dim', UNSURE);
  return sign(emotion);
}

function sign(emotion: Emotion): string {
  const letter = LETTERS[emotion];
  const coloured = paint(COLOURS[emotion], '█');
  return coloured === '█' ? letter : coloured;
}

function legend(steps: readonly Step[]): string {
  const groups = Map.groupBy(steps, ({ emotion, confidence }) =>
    confidence < ADVISED_MIN_CONFIDENCE ? 'unsure' : emotion,
  );
  return [...groups]
    .toSorted(([, a], [, b]) => b.length - a.length)
    .map(([name, members]) => {
      const mark = name === 'unsure' ? paint('dim', UNSURE) : sign(name);
      return `${mark} ${name} ${Math.round((members.length / steps.length) * 100)} %`;
    })
    .join('   ');
}

function row({ t, emotion, confidence }: Step): string {
  const line = `${t.padStart(6)}  ${emotion.padEnd(9)} ${(confidence * 100).toFixed(1).padStart(5)} %`;
  if (confidence < ADVISED_MIN_CONFIDENCE) return paint('dim', `${line}  unsure`);
  return `${line}  ${paint(COLOURS[emotion], barOf(confidence))}`;
}
