// Draws a timeline: the waveform, the strip and the curves of each channel, then the time axis.
import { formatTimestamp, type TimedStep } from '@undertone/contract';
import { CURVES, drawCurves } from './draw-curves.ts';
import { drawStrip, STRIP } from './draw-strip.ts';
import { onPaper, type Palette } from './palette.ts';
import type { Label } from './summary.ts';
import type { View } from './view.ts';

export interface Scene {
  readonly steps: readonly TimedStep[];
  readonly channels: number;
  /** Waveforms from 0 to `seconds`: one per channel, one for all channels, or none. */
  readonly peaks: readonly ArrayLike<number>[];
  readonly seconds: number;
  /** Names of the lanes; without them a single lane has none. */
  readonly names?: readonly string[];
  readonly curves?: boolean;
  readonly filter?: ReadonlySet<Label>;
}

const WAVE = 52;
const NAME = 18;
const GAP = 10;
const AXIS = 20;
const TICKS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14_400];
const NO_FILTER: ReadonlySet<Label> = new Set();

function laneHeight({ peaks, names, curves }: Scene): number {
  return (names ? NAME : 0) + (peaks.length > 0 ? WAVE : 0) + STRIP + (curves ? CURVES : 0) + GAP;
}

export function heightOf(scene: Scene): number {
  return scene.channels * laneHeight(scene) + AXIS;
}

export function draw(
  canvas: CanvasRenderingContext2D,
  scene: Scene,
  view: View,
  palette: Palette,
  width: number,
): void {
  const { channels, peaks, names, curves = false, filter = NO_FILTER } = scene;
  const { from, to } = view;
  const x = (seconds: number) => ((seconds - from) / (to - from)) * width;
  for (let channel = 0; channel < channels; channel++) {
    let top = channel * laneHeight(scene);
    if (names) {
      drawName(canvas, names[channel] ?? '', top, palette);
      top += NAME;
    }
    const wave = peaks[channel] ?? peaks[0];
    if (wave !== undefined) {
      drawWave(canvas, wave, scene.seconds, view, { top, width, colour: palette.soft });
      top += WAVE;
    }
    const own = scene.steps.filter(
      (step) => (step.channel ?? 0) === channel && step.end > from && step.start < to,
    );
    drawStrip(canvas, own, { top, width, x, filter }, palette);
    if (curves) drawCurves(canvas, own, { top: top + STRIP, width, x }, palette);
  }
  drawAxis(canvas, view, { top: channels * laneHeight(scene) - GAP + 4, width, x }, palette);
}

function drawName(canvas: CanvasRenderingContext2D, name: string, top: number, palette: Palette): void {
  canvas.font = '600 13px system-ui, sans-serif';
  canvas.fillStyle = palette.ink;
  canvas.textAlign = 'left';
  canvas.textBaseline = 'middle';
  canvas.fillText(name, 0, top + NAME / 2);
}

function drawWave(
  canvas: CanvasRenderingContext2D,
  peaks: ArrayLike<number>,
  seconds: number,
  { from, to }: View,
  { top, width, colour }: { top: number; width: number; colour: string },
): void {
  canvas.fillStyle = colour;
  const indexAt = (column: number) =>
    Math.floor(((from + (column / width) * (to - from)) / seconds) * peaks.length);
  for (let column = 0; column < width; column += 2) {
    const first = indexAt(column);
    if (first < 0 || first >= peaks.length) continue;
    const last = Math.max(first + 1, indexAt(column + 2));
    let peak = 0;
    for (let i = first; i < last; i++) peak = Math.max(peak, peaks[i] ?? 0);
    const height = Math.max(1, Math.min(1, peak) * (WAVE - 6));
    canvas.fillRect(column, top + (WAVE - height) / 2, 1.4, height);
  }
}

function drawAxis(
  canvas: CanvasRenderingContext2D,
  { from, to }: View,
  { top, width, x }: { top: number; width: number; x: (seconds: number) => number },
  palette: Palette,
): void {
  const tick = TICKS.find((seconds) => (seconds / (to - from)) * width >= 64) ?? 86_400;
  canvas.font = '12px system-ui, sans-serif';
  canvas.fillStyle = palette.soft;
  canvas.textBaseline = 'top';
  canvas.textAlign = 'left';
  for (let seconds = Math.ceil(Math.max(0, from) / tick) * tick; seconds < to; seconds += tick) {
    if (x(seconds) > width - 34) break;
    canvas.fillText(formatTimestamp(seconds), x(seconds), top + 4);
    canvas.fillRect(x(seconds), top, 1, 4);
  }
}

/** The whole timeline as a PNG on white, at twice the resolution, with a title. */
export async function toPng(scene: Scene, title: string, palette: Palette): Promise<Blob> {
  const width = 1_200;
  const margin = 24;
  const canvas = document.createElement('canvas');
  const height = heightOf(scene) + 3 * margin;
  canvas.width = 2 * (width + 2 * margin);
  canvas.height = 2 * height;
  const brush = canvas.getContext('2d') as CanvasRenderingContext2D;
  // On a layer of its own, so that gaps in the strip are transparent and become white.
  brush.scale(2, 2);
  brush.translate(margin, 2 * margin);
  draw(brush, scene, { from: 0, to: Math.max(1, scene.seconds) }, onPaper(palette), width);
  brush.setTransform(2, 0, 0, 2, 0, 0);
  brush.globalCompositeOperation = 'destination-over';
  brush.fillStyle = '#ffffff';
  brush.fillRect(0, 0, width + 2 * margin, height);
  brush.globalCompositeOperation = 'source-over';
  brush.fillStyle = '#1d2430';
  brush.font = '600 16px system-ui, sans-serif';
  brush.textAlign = 'left';
  brush.textBaseline = 'top';
  brush.fillText(title, margin, margin - 8);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) =>
      blob ? resolve(blob) : reject(new Error('The browser could not create the PNG.')),
    ),
  );
}
