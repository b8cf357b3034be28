import { styleText } from 'node:util';
import type { Emotion } from '@undertone/contract';

type Style = Parameters<typeof styleText>[0];

export const COLOURS: Record<Emotion, Style> = {
  angry: 'red',
  happy: 'yellow',
  neutral: 'white',
  sad: 'blue',
  nervous: 'magenta',
  surprised: 'cyan',
  disgusted: 'green',
};

const WIDTH = 40;
const DEFAULT_COLUMNS = 80;
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/** One line per emotion, the most likely first: name, percentage and bar. Leaves room for an indentation. */
export function bars(confidences: Readonly<Record<string, number>>, indentation = 0): string[] {
  const entries = Object.entries(confidences).toSorted(([, a], [, b]) => b - a);
  const nameWidth = Math.max(...entries.map(([emotion]) => emotion.length));
  const width = fittingBar(indentation + nameWidth + 10);
  return entries.map(([emotion, confidence], rank) => {
    const label = `${emotion.padEnd(nameWidth)} ${percent(confidence).padStart(7)}`;
    const bar = paint(COLOURS[emotion as Emotion] ?? 'white', barOf(confidence, width));
    return `${rank === 0 ? paint('bold', label) : label}  ${bar}`.trimEnd();
  });
}

/** The rows as lines, with columns as wide as their longest cell. */
export function alignColumns(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  const lines = rows.map((row) => row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  '));
  return lines.map((line) => `${line.trimEnd()}\n`).join('');
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

/** Plain text if standard output is not a terminal or NO_COLOR is set. */
export function paint(style: Style, text: string): string {
  return text === '' ? text : styleText(style, text, { stream: process.stdout });
}

/** Width of the terminal, 80 without one. */
export function columns(): number {
  return process.stdout.columns || DEFAULT_COLUMNS;
}

/** The width of a bar beside this many other characters: at most 40, and less on a narrow terminal. */
export function fittingBar(others: number): number {
  return Math.max(1, Math.min(WIDTH, columns() - others));
}

/** A bar whose length is the share (0 to 1) of the width, in eighths of a character. */
export function barOf(share: number, width = WIDTH): string {
  const eighths = Math.round(share * Math.max(1, width) * 8);
  return '█'.repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8];
}
