import {
  ADVISED_MIN_CONFIDENCE,
  EMOTION_LETTERS,
  type Emotion,
  formatTimestamp,
  hasSpeech,
  labelOf,
  NO_SPEECH,
  type TimedStep,
  timedSteps,
  toCsv,
  toSrt,
  UNSURE,
} from '@undertone/contract';
import type { AsynchResult } from '@undertone/sdk';
import { type Command, Option } from 'commander';
import { barOf, COLOURS, columns, paint, percent } from './bars.ts';

const FORMATS = {
  json: 'the result as one JSON object, details included',
  csv: 'a row for each step as CSV',
  srt: 'the timeline as subtitles',
};

export type TimelineFlags = { readonly [Format in keyof typeof FORMATS]?: true } & {
  readonly details?: true;
};

const MARKS = { [UNSURE]: '·', [NO_SPEECH]: '_' } as const;

export function addTimelineFlags(command: Command): Command {
  for (const [name, description] of Object.entries(FORMATS)) {
    const others = Object.keys(FORMATS).filter((other) => other !== name);
    command.addOption(new Option(`--${name}`, description).conflicts(others));
  }
  return command.option('--details', 'a line for every step, with its speech and all probabilities');
}

/** Writes the result, and nothing else, to standard output. Progress and notes go to standard error. */
export function printTimeline(result: AsynchResult, { json, csv, srt, details }: TimelineFlags): void {
  const steps = timedSteps(result);
  if (json) process.stdout.write(`${JSON.stringify(result)}\n`);
  else if (csv) process.stdout.write(toCsv(steps));
  else if (srt) process.stdout.write(`${toSrt(steps)}\n`);
  else process.stdout.write(`${draw(result, steps, details ?? false)}\n`);
}

/** A row per segment, or per step. The strips and their legend come last, where they stay in view. */
function draw({ segments }: AsynchResult, steps: readonly TimedStep[], details: boolean): string {
  const channels = [...Map.groupBy(steps, ({ channel }) => channel)];
  const strips = channels.map(([channel, own]) => {
    const name = channel === undefined ? '' : `${channel} `;
    const cells = cellsOf(own, columns() - name.length);
    return name + cells.map(sign).join('');
  });
  const isSeparate = channels.some(([channel]) => channel !== undefined);
  const rows =
    details || segments === undefined
      ? steps.map((step) => stepRow(step, details))
      : segments.map(({ start, end, channel, emotion, confidence }) =>
          row({
            name: `${formatTimestamp(start)} - ${formatTimestamp(end)}`,
            channel: isSeparate ? channel : undefined,
            emotion: emotion ?? NO_SPEECH,
            confidence,
          }),
        );
  return [...rows, '', ...strips, sharesOf(steps, sign).join('   ')].join('\n');
}

/** As many labels as fit into the width. Where one stands for several steps, it is the one with the most confidence. */
function cellsOf(steps: readonly TimedStep[], width: number): string[] {
  const count = Math.min(steps.length, Math.max(1, width));
  const bound = (i: number) => Math.floor((i * steps.length) / count);
  const weight = (group: readonly TimedStep[]) => group.reduce((sum, { confidence }) => sum + confidence, 0);
  return Array.from({ length: count }, (_, i) => {
    const groups = [...Map.groupBy(steps.slice(bound(i), bound(i + 1)), labelOf)];
    const [[label] = [NO_SPEECH]] = groups.toSorted(([, a], [, b]) => weight(b) - weight(a));
    return label;
  });
}

/** One character for a label: a coloured block, or a letter if there is no colour. */
export function sign(label: string): string {
  const mark = MARKS[label as keyof typeof MARKS];
  if (mark !== undefined) return paint('dim', mark);
  const block = paint(COLOURS[label as Emotion], '█');
  return block === '█' ? EMOTION_LETTERS[label as Emotion] : block;
}

/** The share of each label, the largest first: `angry 40 %`. */
export function sharesOf(steps: readonly TimedStep[], signOf = (_label: string) => ''): string[] {
  return [...Map.groupBy(steps, labelOf)]
    .toSorted(([, a], [, b]) => b.length - a.length)
    .map(([label, own]) =>
      `${signOf(label)} ${label} ${Math.round((own.length / steps.length) * 100)} %`.trimStart(),
    );
}

function stepRow(step: TimedStep, details: boolean): string {
  const { start, channel, confidence, speech_seconds = 0, all_predictions } = step;
  const emotion = hasSpeech(step) ? step.emotion : NO_SPEECH;
  const line = row({ name: formatTimestamp(start).padStart(6), channel, emotion, confidence });
  if (!details || all_predictions === undefined) return line;
  const all = Object.entries(all_predictions).map(([name, share]) => `${name} ${share.toFixed(3)}`);
  return `${line}\n        ${paint('dim', `${speech_seconds.toFixed(1)} s of speech, ${all.join(', ')}`)}`;
}

interface Row {
  readonly name: string;
  readonly channel?: number | undefined;
  readonly emotion: Emotion | typeof NO_SPEECH;
  readonly confidence: number;
}

export function row({ name, channel, emotion, confidence }: Row): string {
  const place = channel === undefined ? name : `${name}  ${channel}`;
  if (emotion === NO_SPEECH) return paint('dim', `${place}  ${NO_SPEECH}`);
  const line = `${place}  ${emotion.padEnd(9)} ${percent(confidence).padStart(7)}`;
  if (confidence < ADVISED_MIN_CONFIDENCE) return paint('dim', `${line}  ${UNSURE}`);
  const bar = barOf(confidence, Math.min(40, columns() - line.length - 2));
  return `${line}  ${paint(COLOURS[emotion], bar)}`;
}
