// The probability of each emotion over time.
import { EMOTION_LETTERS, type Emotion, hasSpeech, type TimedStep } from '@undertone/contract';
import type { Palette } from './palette.ts';

export const CURVES = 72;
/** Room above 100 % and below 0 %. */
const MARGIN = 5;

export function drawCurves(
  canvas: CanvasRenderingContext2D,
  steps: readonly TimedStep[],
  { top, width, x }: { top: number; width: number; x: (seconds: number) => number },
  palette: Palette,
): void {
  const y = (share: number) => top + MARGIN + (1 - share) * (CURVES - 2 * MARGIN);
  canvas.fillStyle = palette.line;
  for (const share of [0, 0.5, 1]) canvas.fillRect(0, Math.round(y(share)), width, 1);
  const emotions = Object.keys(
    steps.find((step) => step.all_predictions)?.all_predictions ?? {},
  ) as Emotion[];
  for (const emotion of emotions) {
    canvas.strokeStyle = palette.emotions[emotion];
    canvas.lineWidth = 2;
    canvas.beginPath();
    let isOn = false;
    let peak: { share: number; at: number } = { share: 0, at: 0 };
    for (const step of steps) {
      const share = hasSpeech(step) ? step.all_predictions?.[emotion] : undefined;
      const middle = x((step.start + step.end) / 2);
      // Silence interrupts the line.
      if (share === undefined) isOn = false;
      else {
        if (isOn) canvas.lineTo(middle, y(share));
        else canvas.moveTo(middle, y(share));
        // A single point is visible too.
        if (!isOn) canvas.lineTo(middle + 0.5, y(share));
        isOn = true;
        if (share > peak.share && middle > 8 && middle < width - 8) peak = { share, at: middle };
      }
    }
    canvas.stroke();
    letter(canvas, emotion, peak, y, palette);
  }
}

/** The letter of an emotion at the peak of its line, for people who cannot tell the colours apart. */
function letter(
  canvas: CanvasRenderingContext2D,
  emotion: Emotion,
  { share, at }: { share: number; at: number },
  y: (share: number) => number,
  palette: Palette,
): void {
  if (share < 0.2) return;
  canvas.font = '700 11px system-ui, sans-serif';
  canvas.textAlign = 'center';
  canvas.textBaseline = 'middle';
  canvas.fillStyle = palette.emotions[emotion];
  canvas.beginPath();
  canvas.arc(at, y(share) + 3, 8, 0, 2 * Math.PI);
  canvas.fill();
  canvas.fillStyle = emotion === 'happy' ? '#1d1400' : '#ffffff';
  canvas.fillText(EMOTION_LETTERS[emotion], at, y(share) + 3.5);
}
