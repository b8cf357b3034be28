// The strip of a channel: colour and pattern are the emotion, the height is the confidence.
import { EMOTION_LETTERS, labelOf, NO_SPEECH, type TimedStep, UNSURE } from '@undertone/contract';
import { cellsOf } from './cells.ts';
import { inkOn, type Palette, patternOf } from './palette.ts';
import { isEmotion, type Segment, segmentsOf } from './segments.ts';
import type { Label } from './summary.ts';

export const STRIP = 46;
const FONT = '600 13px system-ui, sans-serif';
/** Height of the text at the bottom of a bar: lower than the lowest sure bar. */
const TEXT = 17;
const DIMMED = 0.15;

export interface StripBox {
  readonly top: number;
  readonly width: number;
  readonly x: (seconds: number) => number;
  /** Other labels are dimmed; an empty set dims nothing. */
  readonly filter: ReadonlySet<Label>;
}

export function drawStrip(
  canvas: CanvasRenderingContext2D,
  steps: readonly TimedStep[],
  box: StripBox,
  palette: Palette,
): void {
  const { top, width, x, filter } = box;
  const cells = cellsOf(steps, width);
  canvas.fillStyle = palette.line;
  canvas.fillRect(0, top + STRIP - 1, width, 1);
  for (const cell of cells) {
    const label = labelOf(cell);
    if (label === NO_SPEECH) continue;
    const left = x(cell.start);
    const height = Math.max(4, cell.confidence * STRIP);
    canvas.globalAlpha = isShown(label, filter) ? 1 : DIMMED;
    canvas.fillStyle = isEmotion(label) ? patternOf(canvas, label, palette.emotions[label]) : palette.unsure;
    canvas.fillRect(left, top + STRIP - height, Math.max(1, x(cell.end) - left), height);
  }
  for (const segment of segmentsOf(cells)) {
    canvas.globalAlpha = isShown(segment.label, filter) ? 1 : DIMMED;
    const left = Math.max(0, x(segment.start));
    const right = Math.min(width, x(segment.end));
    // A gap between neighbours of different emotions.
    canvas.clearRect(x(segment.end) - 1, top, 1, STRIP - 1);
    write(canvas, segment, { left, right, top }, palette);
  }
  canvas.globalAlpha = 1;
}

function isShown(label: Label, filter: ReadonlySet<Label>): boolean {
  return filter.size === 0 || filter.has(label);
}

/** The name if it fits, otherwise the letter, otherwise nothing. Silence is empty. */
function write(
  canvas: CanvasRenderingContext2D,
  { label }: Segment,
  { left, right, top }: { left: number; right: number; top: number },
  palette: Palette,
): void {
  const texts = isEmotion(label)
    ? [label, EMOTION_LETTERS[label]]
    : label === UNSURE
      ? ['unsure ?', '?']
      : [];
  canvas.font = FONT;
  const words = texts.find((text) => canvas.measureText(text).width + 8 <= right - left);
  if (words === undefined) return;
  const middle = (left + right) / 2;
  const half = canvas.measureText(words).width / 2 + 4;
  canvas.textAlign = 'center';
  canvas.textBaseline = 'middle';
  // A plain background keeps the text readable on the pattern.
  canvas.fillStyle = isEmotion(label) ? palette.emotions[label] : palette.unsure;
  canvas.fillRect(middle - half, top + STRIP - TEXT, 2 * half, TEXT - 1);
  canvas.fillStyle = isEmotion(label) ? inkOn(label) : palette.ink;
  canvas.fillText(words, middle, top + STRIP - TEXT / 2);
}
