/**
 * Low-pass filters for rational resampling, laid out one row per fractional position.
 *
 * An output sample falls between two input samples. How far is one of `phases` fractions, and each fraction has its
 * own row of coefficients: a windowed sinc, sampled at that offset.
 */
import type { Stage } from './plan.ts';

/** Edges in cycles per input sample: kept up to `pass`, gone from `stop` on. */
export interface Band {
  readonly pass: number;
  readonly stop: number;
}

/** What the stop band is held down by, in dB: further than the noise of 16-bit samples. */
const ATTENUATION = 102;

/**
 * Odd rates (12,345 Hz) would need thousands of rows. From this many on, interpolating between neighbouring rows errs
 * by less than -110 dB.
 */
const MOST_ROWS = 1024;

/** How large a filter must be. */
export function sizeFilter(phases: number, { pass, stop }: Band): Omit<Stage, 'key' | 'stride'> {
  const width = (ATTENUATION - 7.95) / (14.36 * (stop - pass));
  return {
    phases,
    rows: Math.min(phases, MOST_ROWS),
    taps: 16 * Math.ceil(width / 16),
    cutoff: (pass + stop) / 2,
  };
}

/** `rows + 1` rows of `taps` coefficients: one more, so that the last one has a neighbour to interpolate with. */
export function designFilter({ rows, taps, cutoff }: Stage): Float32Array {
  const half = taps / 2;
  const prototype = sampleWindowedSinc(half, rows, cutoff);
  const coefficients = new Float32Array((rows + 1) * taps);
  for (let row = 0; row <= rows; row++) {
    for (let tap = 0; tap < taps; tap++) {
      coefficients[row * taps + tap] = prototype[Math.abs((tap - half + 1) * rows - row)] ?? 0;
    }
  }
  return coefficients;
}

/** The right half of a Kaiser-windowed sinc, `perSample` values for each input sample it spans. */
function sampleWindowedSinc(half: number, perSample: number, cutoff: number): Float64Array {
  const beta = 0.1102 * (ATTENUATION - 8.7);
  const peak = bessel(beta);
  const values = new Float64Array(half * perSample + 1);
  values[0] = 2 * cutoff;
  for (let i = 1; i < values.length; i++) {
    const t = i / perSample;
    const window = bessel(beta * Math.sqrt(1 - (t / half) ** 2)) / peak;
    values[i] = (Math.sin(2 * Math.PI * cutoff * t) / (Math.PI * t)) * window;
  }
  return values;
}

/** Modified Bessel function of the first kind, order zero. */
function bessel(x: number): number {
  const quarter = (x * x) / 4;
  let term = 1;
  let sum = 1;
  for (let k = 1; term > sum * 1e-10; k++) {
    term *= quarter / (k * k);
    sum += term;
  }
  return sum;
}
