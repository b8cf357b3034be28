import { INTERVAL_SECONDS, parseTimestamp } from '@undertone/contract';
import type { AsynchResult } from '@undertone/sdk';

/** An element of the time line with its place in seconds. */
export interface Step {
  readonly t: string;
  readonly start: number;
  readonly end: number;
  readonly emotion: AsynchResult['emotions'][number]['emotion'];
  readonly confidence: number;
}

/** The elements with their starts and ends; the last one is taken to be as long as the first. */
export function stepsOf({ emotions }: AsynchResult): Step[] {
  const starts = emotions.map(({ t }) => parseTimestamp(t));
  const length = (starts[1] ?? INTERVAL_SECONDS.default) - (starts[0] ?? 0);
  return emotions.map((element, i) => {
    const start = starts[i] ?? 0;
    return { ...element, start, end: starts[i + 1] ?? start + length };
  });
}

export function asJson(result: AsynchResult): string {
  return JSON.stringify(result);
}

export function asCsv(result: AsynchResult): string {
  const rows = stepsOf(result).map(({ t, start, emotion, confidence }) => [t, start, emotion, confidence]);
  return [['t', 'seconds', 'emotion', 'confidence'], ...rows].map((row) => row.join(',')).join('\n');
}

/** Subtitles: what was heard, while it is heard. */
export function asSrt(result: AsynchResult): string {
  return stepsOf(result)
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
