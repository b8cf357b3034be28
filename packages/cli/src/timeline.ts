import { ADVISED_MIN_CONFIDENCE, type Emotion, INTERVAL_SECONDS, parseTimestamp } from '@undertone/contract';
import type { AsynchResult } from '@undertone/sdk';
import { type Command, Option } from 'commander';
import { barOf, COLOURS, columns, paint } from './bars.ts';
import { csvLine } from './csv.ts';
import { NO_SPEECH, UNSURE } from './words.ts';

const FORMATS = {
  json: 'the result as one JSON object, details included',
  csv: 'a row for each step as CSV',
  srt: 'the timeline as subtitles',
};

export type TimelineFlags = { readonly [Format in keyof typeof FORMATS]?: true } & {
  readonly details?: true;
};

/** A step of the timeline with its place in seconds, and what was heard in it: an emotion, or no speech. */
export type Step = AsynchResult['emotions'][number] & {
  readonly start: number;
  readonly end: number;
  readonly heard: Emotion | typeof NO_SPEECH;
};

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

/** What is no emotion: steps under the advised confidence, and steps without speech. */
const MARKS = { [UNSURE]: '·', [NO_SPEECH]: '_' } as const;

const SRT_HOUR = 3600;

export function addTimelineFlags(command: Command): Command {
  for (const [name, description] of Object.entries(FORMATS)) {
    const others = Object.keys(FORMATS).filter((other) => other !== name);
    command.addOption(new Option(`--${name}`, description).conflicts(others));
  }
  return command.option(
    '--details',
    'a line for every step, with its seconds of speech and all probabilities',
  );
}

/** The result goes to standard output, alone; progress and remarks go to standard error. */
export function printTimeline(result: AsynchResult, { json, csv, srt, details }: TimelineFlags): void {
  const steps = stepsOf(result);
  const text = json
    ? JSON.stringify(result)
    : csv
      ? [csvHeader(steps), ...csvRows(steps)].map(csvLine).join('\n')
      : srt
        ? asSrt(steps)
        : draw(result, steps, details ?? false);
  process.stdout.write(`${text}\n`);
}

/** The elements with their starts and ends; where there are no details, the last one is as long as the first. */
export function stepsOf({ emotions }: AsynchResult): Step[] {
  const starts = [...new Set(emotions.map(({ t }) => parseTimestamp(t)))];
  const length = (starts[1] ?? INTERVAL_SECONDS.default) - (starts[0] ?? 0);
  return emotions.map((element) => {
    const start = element.start ?? parseTimestamp(element.t);
    const heard = element.speech === false ? NO_SPEECH : element.emotion;
    return { ...element, start, end: element.end ?? start + length, heard };
  });
}

export function csvHeader(steps: readonly Step[]): string[] {
  const emotions = Object.keys(steps[0]?.all_predictions ?? {});
  return ['t', 'seconds', 'emotion', 'confidence', 'end', 'channel', 'speech_seconds', 'speech', ...emotions];
}

export function csvRows(steps: readonly Step[]): unknown[][] {
  return steps.map(
    ({ t, start, heard, confidence, end, channel, speech_seconds, speech, all_predictions }) => [
      ...[t, start, heard, confidence, end, channel, speech_seconds, speech],
      ...Object.values(all_predictions ?? {}),
    ],
  );
}

function asSrt(steps: readonly Step[]): string {
  return steps
    .map(({ start, end, channel, heard, confidence }, i) => {
      const who = channel === undefined ? '' : `channel ${channel}: `;
      const what = heard === NO_SPEECH ? heard : `${heard} ${Math.round(confidence * 100)} %`;
      return `${i + 1}\n${srtTime(start)} --> ${srtTime(end)}\n${who}${what}\n`;
    })
    .join('\n');
}

function srtTime(seconds: number): string {
  const pad = (value: number, digits = 2) => String(Math.floor(value)).padStart(digits, '0');
  const millis = pad(Math.round((seconds % 1) * 1000), 3);
  return `${pad(seconds / SRT_HOUR)}:${pad((seconds / 60) % 60)}:${pad(seconds % 60)},${millis}`;
}

/**
 * A row for each stretch of one emotion, or for each step. The summary comes last, where it stays in view: one strip for
 * each channel and what its signs mean.
 */
function draw({ segments }: AsynchResult, steps: readonly Step[], details: boolean): string {
  const channels = [...Map.groupBy(steps, ({ channel }) => channel)];
  const strips = channels.map(([channel, own]) => {
    const name = channel === undefined ? '' : `${channel} `;
    return (
      name +
      cells(own, columns() - name.length)
        .map(sign)
        .join('')
    );
  });
  const isSeparate = channels.some(([channel]) => channel !== undefined);
  const rows =
    details || segments === undefined
      ? steps.map((step) => stepRow(step, details))
      : segments.map((segment) =>
          row({
            name: `${clock(segment.start)} - ${clock(segment.end)}`,
            channel: isSeparate ? segment.channel : undefined,
            heard: segment.emotion ?? NO_SPEECH,
            confidence: segment.confidence,
          }),
        );
  return [...rows, '', ...strips, legend(steps)].join('\n');
}

/** As many cells as fit; one that stands for several steps shows what weighs most in them. */
function cells(steps: readonly Step[], width: number): string[] {
  const count = Math.min(steps.length, Math.max(1, width));
  return Array.from({ length: count }, (_, i) => {
    const from = Math.floor((i * steps.length) / count);
    return heaviest(steps.slice(from, Math.floor(((i + 1) * steps.length) / count)));
  });
}

function heaviest(steps: readonly Step[]): string {
  const weight = (group: readonly Step[]) => group.reduce((sum, { confidence }) => sum + confidence, 0);
  const groups = [...Map.groupBy(steps, labelOf)];
  const [[label] = [NO_SPEECH]] = groups.toSorted(([, a], [, b]) => weight(b) - weight(a));
  return label;
}

/** What a step is counted as: its emotion when that is sure, and otherwise why it is none. */
export function labelOf({ heard, confidence }: Pick<Step, 'heard' | 'confidence'>): string {
  return heard !== NO_SPEECH && confidence < ADVISED_MIN_CONFIDENCE ? UNSURE : heard;
}

/** One character for an emotion, or for what is none. */
export function sign(label: string): string {
  const mark = MARKS[label as keyof typeof MARKS];
  if (mark !== undefined) return paint('dim', mark);
  const coloured = paint(COLOURS[label as Emotion], '█');
  return coloured === '█' ? LETTERS[label as Emotion] : coloured;
}

function legend(steps: readonly Step[]): string {
  return [...Map.groupBy(steps, labelOf)]
    .toSorted(([, a], [, b]) => b.length - a.length)
    .map(([label, members]) => {
      return `${sign(label)} ${label} ${Math.round((members.length / steps.length) * 100)} %`;
    })
    .join('   ');
}

function stepRow(
  { t, channel, heard, confidence, speech_seconds, all_predictions }: Step,
  details: boolean,
): string {
  const line = row({ name: t.padStart(6), channel, heard, confidence });
  if (!details || all_predictions === undefined) return line;
  const all = Object.entries(all_predictions).map(([emotion, share]) => `${emotion} ${share.toFixed(3)}`);
  return `${line}\n        ${paint('dim', `${(speech_seconds ?? 0).toFixed(1)} s of speech, ${all.join(', ')}`)}`;
}

interface Row {
  readonly name: string;
  readonly channel: number | undefined;
  readonly heard: string;
  readonly confidence: number;
}

export function row({ name, channel, heard, confidence }: Row): string {
  const place = channel === undefined ? name : `${name}  ${channel}`;
  if (heard === NO_SPEECH) return paint('dim', `${place}  ${NO_SPEECH}`);
  const line = `${place}  ${heard.padEnd(9)} ${(confidence * 100).toFixed(1).padStart(5)} %`;
  if (confidence < ADVISED_MIN_CONFIDENCE) return paint('dim', `${line}  ${UNSURE}`);
  const bar = barOf(confidence, Math.min(40, columns() - line.length - 2));
  return `${line}  ${paint(COLOURS[heard as Emotion], bar)}`;
}

function clock(seconds: number): string {
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  return `${two(seconds / 60)}:${two(seconds % 60)}`;
}
