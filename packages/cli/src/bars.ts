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

/** One line for each emotion, the strongest first: its name, its share and a bar as long as the share. */
export function bars(confidences: Readonly<Record<string, number>>): string[] {
  const entries = Object.entries(confidences).toSorted(([, a], [, b]) => b - a);
  const nameWidth = Math.max(...entries.map(([emotion]) => emotion.length));
  return entries.map(([emotion, confidence], rank) => {
    const label = `${emotion.padEnd(nameWidth)} ${(confidence * 100).toFixed(1).padStart(5)} %`;
    const bar = paint(COLOURS[emotion as Emotion] ?? 'white', barOf(confidence));
    return `${rank === 0 ? paint('bold', label) : label}  ${bar}`.trimEnd();
  });
}

/** Without colour where the output is no terminal or NO_COLOR asks for none. */
export function paint(style: Style, text: string): string {
  return text === '' ? text : styleText(style, text, { stream: process.stdout });
}

/** Of the terminal, or a usual one where there is none. */
export function columns(): number {
  return process.stdout.columns || DEFAULT_COLUMNS;
}

/** A bar as long as the share of one. */
export function barOf(share: number, width = WIDTH): string {
  const eighths = Math.round(share * Math.max(1, width) * 8);
  return '█'.repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8];
}
