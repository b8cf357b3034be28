import { sizeFilter } from './filter-bank.ts';

/** What the models hear. */
export const MODEL_SAMPLE_RATE = 16_000;

/** One pass over the samples: `phases` outputs for every `stride` inputs, each a weighted sum of `taps` inputs. */
export interface Stage {
  /** Tells one filter from another. */
  readonly key: string;
  readonly stride: number;
  /** Fractions of an input sample an output can fall on. */
  readonly phases: number;
  /** Fractions whose coefficients are computed: all, or fewer where that would be a great many. */
  readonly rows: number;
  /** Coefficients in a row, a multiple of 16. */
  readonly taps: number;
  /** The middle of the filter's slope, in cycles per input sample. */
  readonly cutoff: number;
}

/** Samples from `start` up to, not including, `end`, counted from the start of the recording. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** The share of the band that comes through untouched; the rest is the filter's slope. */
const PASS_BAND = 0.9;

/**
 * How to get from a recording's rate to the model's. A steep filter is expensive at a high rate, so a recording far
 * above the wanted rate is first decimated by a whole number with a gentle filter, which lets through what would fold
 * only onto frequencies that the steep one removes afterwards. Cheap: nothing is designed yet.
 */
export function planStages(fromRate: number): readonly Stage[] {
  if (fromRate === MODEL_SAMPLE_RATE) return [];
  const edge = Math.min(fromRate, MODEL_SAMPLE_RATE) / 2;
  const stages: Stage[] = [];

  const decimation = Math.max(1, Math.floor(fromRate / (1.25 * MODEL_SAMPLE_RATE)));
  const middleRate = fromRate / decimation;
  if (decimation > 1) {
    const band = { pass: edge / fromRate, stop: (middleRate - edge) / fromRate };
    stages.push({ key: `${fromRate} gentle`, stride: decimation, ...sizeFilter(1, band) });
  }

  const divisor = greatestCommonDivisor(fromRate, MODEL_SAMPLE_RATE * decimation);
  const phases = (MODEL_SAMPLE_RATE * decimation) / divisor;
  const stride = fromRate / divisor;
  if (phases !== stride) {
    const band = { pass: (PASS_BAND * edge) / middleRate, stop: edge / middleRate };
    stages.push({ key: `${fromRate} steep`, stride, ...sizeFilter(phases, band) });
  }
  return stages;
}

/** The inputs of a stage that these outputs of it are made of. Those before 0 are silence. */
function inputsOf({ stride, phases, taps }: Stage, outputs: Span): Span {
  return {
    start: Math.floor((outputs.start * stride) / phases) - taps / 2 + 1,
    end: Math.floor(((outputs.end - 1) * stride) / phases) + taps / 2 + 1,
  };
}

/** The same for all stages together: the samples of the recording that these 16 kHz samples are made of. */
export function framesFor(stages: readonly Stage[], outputs: Span): Span {
  return stages.reduceRight((span, stage) => inputsOf(stage, atLeastZero(span)), outputs);
}

/** How many 16 kHz samples so many samples of a recording make. */
export function modelSamples(frames: number, fromRate: number): number {
  return Math.round((frames * MODEL_SAMPLE_RATE) / fromRate);
}

export function atLeastZero({ start, end }: Span): Span {
  return { start: Math.max(0, start), end };
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
