/**
 * Low-pass filters for rational resampling, laid out one row per fractional position.
 *
 * An output sample falls between two input samples. How far is one of `phases` fractions, and each
 * fraction has its own row of coefficients: a windowed sinc, sampled at that offset.
 */
export interface FilterBank {
  /** Fractions of an input sample an output can fall on; the numerator of the rate ratio. */
  readonly phases: number;
  /** Rows that were computed: `phases`, or fewer where that would be a great many. */
  readonly rows: number;
  /** Coefficients in a row, a multiple of 16. */
  readonly taps: number;
  readonly coefficients: Float32Array;
  /** A single row that cuts at exactly half the band: every second coefficient is zero but the one in the middle. */
  readonly halfBand: boolean;
}

/** Edges in cycles per input sample: kept up to `pass`, gone from `stop` on. */
export interface Band {
  pass: number;
  stop: number;
}

/** What the stop band is held down by, in dB: further than the noise of 16-bit samples. */
const ATTENUATION = 102;

/**
 * Odd rates (12,345 Hz) would need thousands of rows. From this many on, interpolating between
 * neighbouring rows errs by less than -110 dB.
 */
const MOST_ROWS = 1024;

export function designFilterBank(phases: number, band: Band): FilterBank {
  const width = (ATTENUATION - 7.95) / (14.36 * (band.stop - band.pass));
  const half = 8 * Math.ceil(width / 16);
  const taps = 2 * half;
  const rows = Math.min(phases, MOST_ROWS);
  const cutoff = (band.pass + band.stop) / 2;
  const prototype = sampleWindowedSinc(half, rows, cutoff);

  // One row more than there are rows, so that the last one has a neighbour to interpolate with.
  const coefficients = new Float32Array((rows + 1) * taps);
  for (let row = 0; row <= rows; row++) {
    for (let tap = 0; tap < taps; tap++) {
      coefficients[row * taps + tap] = prototype[Math.abs((tap - half + 1) * rows - row)] ?? 0;
    }
  }
  const halfBand = phases === 1 && Math.abs(cutoff - 0.25) < 1e-12;
  return { phases, rows, taps, coefficients, halfBand };
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
