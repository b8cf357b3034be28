import { ADVISED_MIN_CONFIDENCE, type Emotion, INTERVAL_SECONDS, parseTimestamp } from '@undertone/contract';
import type { AsynchResult } from '@undertone/sdk';
import { type Command, Option } from 'commander';
import { barOf, COLOURS, paint } from './bars.ts';

const FORMATS = {
  json: 'the result as one JSON object',
  csv: 'the timeline as CSV',
  srt: 'the timeline as subtitles',
};

export type TimelineFlags = { readonly [Format in keyof typeof FORMATS]?: true };

/** An element of the timeline with its place in seconds. */
type Step = AsynchResult['emotions'][number] & { readonly start: number; readonly end: number };

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

const DEFAULT_COLUMNS = 80;

export function addTimelineFlags(command: Command): Command {
  for (const [name, description] of Object.entries(FORMATS)) {
    const others = Object.keys(FORMATS).filter((other) => other !== name);
    command.addOption(new Option(`--${name}`, description).conflicts(others));
  }
  return command;
}

/** The result goes to standard output, alone; progress and remarks go to standard error. */
export function printTimeline(result: AsynchResult, { json, csv, srt }: TimelineFlags): void {
  const steps = stepsOf(result);
  const text = json ? JSON.stringify(result) : csv ? asCsv(steps) : srt ? asSrt(steps) : draw(steps);
  process.stdout.write(`${text}\n`);
}

/** The elements with their starts and ends; the last one is taken to be as long as the first. */
function stepsOf({ emotions }: AsynchResult): Step[] {
  const starts = emotions.map(({ t }) => parseTimestamp(t));
  const length = (starts[1] ?? INTERVAL_SECONDS.default) - (starts[0] ?? 0);
  return emotions.map((element, i) => {
    const start = starts[i] ?? 0;
    return { ...element, start, end: starts[i + 1] ?? start + length };
  });
}

function asCsv(steps: readonly Step[]): string {
  const rows = steps.map(({ t, start, emotion, confidence }) => [t, start, emotion, confidence]);
  return [['t', 'seconds', 'emotion', 'confidence'], ...rows].map((row) => row.join(',')).join('\n');
}

function asSrt(steps: readonly Step[]): string {
  return steps
    .map(({ start, end, emotion, confidence }, i) => {
      const percent = `${Math.round(confidence * 100)} %`;
      return `${i + 1}\n${srtTime(start)} --> ${srtTime(end)}\n${emotion} ${percent}\n`;
    })
    .join('\n');
}

function srtTime(seconds: number): string {
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  return `${two(seconds / 3600)}:${two((seconds / 60) % 60)}:${two(seconds % 60)},000`;
}

/** The whole recording in one line, what its signs mean, and a row for each step. */
function draw(steps: readonly Step[]): string {
  const strip = cells(steps, process.stdout.columns ?? DEFAULT_COLUMNS)
    .map(cell)
    .join('');
  return [strip, legend(steps), '', ...steps.map(row)].join('\n');
}

/** As many cells as fit; one that stands for several steps shows the emotion that weighs most in them. */
function cells(steps: readonly Step[], columns: number): Step[] {
  const count = Math.min(steps.length, columns);
  return Array.from({ length: count }, (_, i) => {
    const from = Math.floor((i * steps.length) / count);
    return heaviest(steps.slice(from, Math.floor(((i + 1) * steps.length) / count)));
  });
}

function heaviest(steps: readonly Step[]): Step {
  const weight = (group: readonly Step[]) => group.reduce((sum, { confidence }) => sum + confidence, 0);
  const groups = Map.groupBy(steps, ({ emotion }) => emotion);
  const [most = []] = [...groups.values()].toSorted((a, b) => weight(b) - weight(a));
  return most.reduce((best, step) => (step.confidence > best.confidence ? step : best));
}

/** One cell of a strip: a coloured block, or a letter where there is no colour. */
export function cell({ emotion, confidence }: Pick<Step, 'emotion' | 'confidence'>): string {
  return confidence < ADVISED_MIN_CONFIDENCE ? paint('dim', UNSURE) : sign(emotion);
}

function sign(emotion: Emotion): string {
  const coloured = paint(COLOURS[emotion], '█');
  return coloured === '█' ? LETTERS[emotion] : coloured;
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

/** When, what and how sure, with a bar. */
export function row({ t, emotion, confidence }: Omit<Step, 'start' | 'end'>): string {
  const line = `${t.padStart(6)}  ${emotion.padEnd(9)} ${(confidence * 100).toFixed(1).padStart(5)} %`;
  if (confidence < ADVISED_MIN_CONFIDENCE) return paint('dim', `${line}  unsure`);
  return `${line}  ${paint(COLOURS[emotion], barOf(confidence))}`;
}
