import { EMOTIONS, formatTimestamp } from '@undertone/contract';
import { describe, kindOf, percent } from './emotions.ts';
import type { Result } from './result.ts';

export function toCsv({ steps }: Result): string {
  const emotions = EMOTIONS.filter((name) => steps.some(({ all }) => all?.[name] !== undefined));
  const header = ['t', 'seconds', 'emotion', 'confidence', 'end', 'channel', 'speech_seconds', ...emotions];
  const rows = steps.map((step) => [
    ...[formatTimestamp(step.start), seconds(step.start)],
    ...[kindOf(step) === 'no speech' ? 'no speech' : step.emotion, step.confidence],
    ...[seconds(step.end), step.channel, step.speechSeconds ?? ''],
    ...emotions.map((name) => step.all?.[name] ?? ''),
  ]);
  return [header, ...rows].map((row) => `${row.join(',')}\n`).join('');
}

export function toJson({ answer }: Result): string {
  return `${JSON.stringify(answer, null, 2)}\n`;
}

export function toSrt({ steps, channels }: Result): string {
  return steps
    .map((step, i) => {
      const channel = channels > 1 ? `channel ${step.channel + 1}: ` : '';
      const confidence = kindOf(step) === 'no speech' ? '' : ` ${percent(step.confidence)}`;
      return `${i + 1}\n${srtTime(step.start)} --> ${srtTime(step.end)}\n${channel}${describe(step)}${confidence}\n`;
    })
    .join('\n');
}

export function download(name: string, content: Blob | string, type = 'text/plain'): void {
  const blob = typeof content === 'string' ? new Blob([content], { type: `${type};charset=utf-8` }) : content;
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function seconds(value: number): number {
  return Math.round(value * 1000) / 1000;
}

function srtTime(value: number): string {
  const ms = Math.round(value * 1000);
  const two = (part: number) => String(Math.floor(part)).padStart(2, '0');
  const [hours, minutes, rest] = [ms / 3_600_000, (ms / 60_000) % 60, (ms / 1000) % 60];
  return `${two(hours)}:${two(minutes)}:${two(rest)},${String(ms % 1000).padStart(3, '0')}`;
}
