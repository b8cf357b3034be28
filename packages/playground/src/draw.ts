// Draws a timeline: the waveform and the emotions of each channel, then the time axis.
import {
  EMOTION_LETTERS,
  EMOTIONS,
  type Emotion,
  formatTimestamp,
  labelOf,
  NO_SPEECH,
  type TimedStep as Step,
  UNSURE,
} from '@undertone/contract';

export interface Scene {
  readonly steps: readonly Step[];
  readonly channels: number;
  /** Waveforms from 0 to `seconds`: one per channel, one for all channels, or none. */
  readonly peaks: readonly ArrayLike<number>[];
  readonly seconds: number;
  /** The visible range in seconds. */
  readonly from: number;
  readonly to: number;
}

const WAVE = 52;
const BAND = 30;
const GAP = 10;
const AXIS = 20;
const FONT = '600 13px system-ui, sans-serif';
const TICKS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14_400];

export function heightOf({ channels, peaks }: Pick<Scene, 'channels' | 'peaks'>): number {
  return channels * ((peaks.length > 0 ? WAVE : 0) + BAND + GAP) + AXIS;
}

/** Colours of the current theme. */
export interface Palette {
  readonly emotions: Record<Emotion, string>;
  readonly ink: string;
  readonly soft: string;
  readonly line: string;
}

export function readPalette(element: Element): Palette {
  // Custom properties with light-dark() are resolved only in a real colour property.
  const probe = element.appendChild(document.createElement('i'));
  const colour = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const emotions = Object.fromEntries(EMOTIONS.map((name) => [name, colour(name)]));
  const palette = { emotions, ink: colour('ink'), soft: colour('soft'), line: colour('line') };
  probe.remove();
  return palette as Palette;
}

export function draw(canvas: CanvasRenderingContext2D, scene: Scene, palette: Palette, width: number): void {
  const { channels, peaks, from, to } = scene;
  const x = (seconds: number) => ((seconds - from) / (to - from)) * width;
  let top = 0;
  for (let channel = 0; channel < channels; channel++) {
    const wave = peaks[channel] ?? peaks[0];
    if (wave !== undefined) {
      drawWave(canvas, wave, { ...scene, top, width, colour: palette.soft });
      top += WAVE;
    }
    const own = scene.steps.filter(
      (step) => (step.channel ?? 0) === channel && step.end > from && step.start < to,
    );
    for (const segment of segmentsOf(cellsOf(own, width))) {
      drawSegment(canvas, segment, { left: x(segment.start), right: x(segment.end), top }, palette);
    }
    top += BAND + GAP;
  }
  drawAxis(canvas, { from, to, top: top - GAP + 4, width, x }, palette);
}

interface Wave extends Scene {
  readonly top: number;
  readonly width: number;
  readonly colour: string;
}

function drawWave(canvas: CanvasRenderingContext2D, peaks: ArrayLike<number>, wave: Wave): void {
  const { seconds, from, to, top, width, colour } = wave;
  canvas.fillStyle = colour;
  for (let column = 0; column < width; column += 2) {
    const at = from + (column / width) * (to - from);
    if (at < 0 || at > seconds) continue;
    const first = Math.floor((at / seconds) * peaks.length);
    const last = Math.max(first + 1, Math.floor(((at + (2 / width) * (to - from)) / seconds) * peaks.length));
    let peak = 0;
    for (let i = first; i < last; i++) peak = Math.max(peak, peaks[i] ?? 0);
    const height = Math.max(1, Math.min(1, peak) * (WAVE - 6));
    canvas.fillRect(column, top + (WAVE - height) / 2, 1.4, height);
  }
}

/** Merges steps that are narrower than two pixels into the emotion with the most confidence. */
function cellsOf(steps: readonly Step[], width: number): Step[] {
  const count = Math.min(steps.length, Math.floor(width / 2));
  if (count === steps.length) return [...steps];
  return Array.from({ length: count }, (_, i) => {
    const group = steps.slice(
      Math.floor((i * steps.length) / count),
      Math.floor(((i + 1) * steps.length) / count),
    );
    const weight = (step: Step) =>
      group.reduce((sum, other) => sum + (other.emotion === step.emotion ? other.confidence : 0), 0);
    const heaviest = group.reduce((best, step) => (weight(step) > weight(best) ? step : best));
    return { ...heaviest, start: group[0]?.start ?? 0, end: group.at(-1)?.end ?? 0 };
  });
}

interface Segment {
  readonly kind: 'sure' | typeof UNSURE | typeof NO_SPEECH;
  readonly emotion: Emotion;
  readonly start: number;
  readonly end: number;
}

/** Joins neighbours that look the same. */
function segmentsOf(steps: readonly Step[]): Segment[] {
  const segments: Segment[] = [];
  for (const step of steps) {
    const { emotion, start, end } = step;
    const label = labelOf(step);
    const kind = label === UNSURE || label === NO_SPEECH ? label : 'sure';
    const last = segments.at(-1);
    const same = last?.kind === kind && (kind === NO_SPEECH || last.emotion === emotion);
    if (last && same && start - last.end < 0.1) segments[segments.length - 1] = { ...last, end };
    else segments.push({ kind, emotion, start, end });
  }
  return segments;
}

interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
}

function drawSegment(canvas: CanvasRenderingContext2D, segment: Segment, box: Box, palette: Palette): void {
  const { kind, emotion } = segment;
  const { left, right, top } = box;
  const width = Math.max(1, right - left - 1);
  canvas.save();
  canvas.beginPath();
  canvas.roundRect(left, top, width, BAND, Math.min(5, width / 2));
  canvas.clip();
  if (kind === NO_SPEECH) {
    canvas.fillStyle = patternOf(canvas, NO_SPEECH, palette.line, palette.soft);
  } else {
    canvas.globalAlpha = kind === UNSURE ? 0.55 : 1;
    canvas.fillStyle = patternOf(canvas, emotion, palette.emotions[emotion], '#ffffff');
  }
  canvas.fillRect(left, top, width, BAND);
  canvas.globalAlpha = 1;
  writeIn(canvas, segment, { left, right: left + width, top }, palette);
  canvas.restore();
}

/** The name if it fits, otherwise the letter, otherwise nothing. */
function writeIn(
  canvas: CanvasRenderingContext2D,
  { kind, emotion }: Segment,
  { left, right, top }: Box,
  palette: Palette,
): void {
  const name = kind === UNSURE ? `${emotion}?` : kind === 'sure' ? emotion : NO_SPEECH;
  const letter =
    kind === 'sure' ? EMOTION_LETTERS[emotion] : kind === UNSURE ? `${EMOTION_LETTERS[emotion]}?` : '–';
  canvas.font = FONT;
  const words = [name, letter].find((text) => canvas.measureText(text).width + 8 <= right - left);
  if (words === undefined) return;
  const middle = (left + right) / 2;
  canvas.textAlign = 'center';
  canvas.textBaseline = 'middle';
  if (kind !== NO_SPEECH) {
    // A plain background keeps the text readable on the pattern.
    const half = canvas.measureText(words).width / 2 + 4;
    canvas.fillStyle = palette.emotions[emotion];
    canvas.fillRect(middle - half, top + 6, 2 * half, BAND - 12);
  }
  canvas.fillStyle = kind === NO_SPEECH ? palette.ink : emotion === 'happy' ? '#1d1400' : '#ffffff';
  canvas.fillText(words, middle, top + BAND / 2 + 1);
}

type Line = [fromX: number, fromY: number, toX: number, toY: number];

/** Lines on a tile of 10 by 10 pixels. Patterns help people who cannot tell the colours apart. */
const PATTERNS: Record<Emotion | typeof NO_SPEECH, readonly Line[]> = {
  angry: [[0, 10, 10, 0]],
  happy: [[5, 4, 5, 6]],
  neutral: [],
  sad: [[0, 5, 10, 5]],
  nervous: [[5, 0, 5, 10]],
  surprised: [
    [5, 0, 5, 10],
    [0, 5, 10, 5],
  ],
  disgusted: [[0, 0, 10, 10]],
  [NO_SPEECH]: [[0, 5, 2, 5]],
};

function patternOf(
  canvas: CanvasRenderingContext2D,
  name: Emotion | typeof NO_SPEECH,
  ground: string,
  lines: string,
): CanvasPattern | string {
  const tile = document.createElement('canvas');
  tile.width = 10;
  tile.height = 10;
  const brush = tile.getContext('2d');
  if (brush === null) return ground;
  brush.fillStyle = ground;
  brush.fillRect(0, 0, 10, 10);
  brush.strokeStyle = lines;
  brush.globalAlpha = 0.45;
  brush.lineWidth = 2;
  for (const [fromX, fromY, toX, toY] of PATTERNS[name]) {
    brush.beginPath();
    brush.moveTo(fromX, fromY);
    brush.lineTo(toX, toY);
    brush.stroke();
  }
  return canvas.createPattern(tile, 'repeat') ?? ground;
}

interface Axis {
  readonly from: number;
  readonly to: number;
  readonly top: number;
  readonly width: number;
  readonly x: (seconds: number) => number;
}

function drawAxis(
  canvas: CanvasRenderingContext2D,
  { from, to, top, width, x }: Axis,
  palette: Palette,
): void {
  const tick = TICKS.find((seconds) => (seconds / (to - from)) * width >= 64) ?? 86_400;
  canvas.font = '12px system-ui, sans-serif';
  canvas.fillStyle = palette.soft;
  canvas.textBaseline = 'top';
  canvas.textAlign = 'left';
  for (let seconds = Math.ceil(from / tick) * tick; seconds < to; seconds += tick) {
    if (x(seconds) > width - 34) break;
    canvas.fillText(formatTimestamp(seconds), x(seconds), top + 4);
    canvas.fillRect(x(seconds), top, 1, 4);
  }
}

/** The timeline as a PNG on white, at twice the resolution, with a title. */
export async function toPng(scene: Scene, title: string, palette: Palette): Promise<Blob> {
  const width = 1_200;
  const margin = 24;
  const canvas = document.createElement('canvas');
  const height = heightOf(scene) + 3 * margin;
  canvas.width = 2 * (width + 2 * margin);
  canvas.height = 2 * height;
  const brush = canvas.getContext('2d') as CanvasRenderingContext2D;
  brush.scale(2, 2);
  brush.fillStyle = '#ffffff';
  brush.fillRect(0, 0, width + 2 * margin, height);
  brush.fillStyle = '#1d2430';
  brush.font = '600 16px system-ui, sans-serif';
  brush.textBaseline = 'top';
  brush.fillText(title, margin, margin - 8);
  brush.translate(margin, 2 * margin);
  draw(brush, scene, { ...palette, ink: '#1d2430', soft: '#5b6675', line: '#e1e5ea' }, width);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) =>
      blob ? resolve(blob) : reject(new Error('The browser could not create the PNG.')),
    ),
  );
}
