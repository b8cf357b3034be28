/** The input rate of the models. */
export const MODEL_SAMPLE_RATE = 16_000;

/** One pass over the samples: `phases` outputs for every `stride` inputs, each a weighted sum of `taps` inputs. */
export interface Stage {
  /** Identifies the filter. */
  readonly key: string;
  readonly stride: number;
  /** Fractional offsets at which an output can fall between inputs. */
  readonly phases: number;
  /** Offsets with computed coefficients: all of them, or fewer if there are too many. */
  readonly rows: number;
  /** Coefficients in a row, a multiple of 16. */
  readonly taps: number;
  /** Centre of the transition band, in cycles per input sample. */
  readonly cutoff: number;
}

/** Samples from `start` to `end` (exclusive), counted from the start of the recording. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Share of the band that passes unchanged; the rest is the transition band. */
const PASS_BAND = 0.9;

/**
 * Plans the conversion from a recording's rate to the model's. A steep filter is expensive at a high rate, so recordings
 * far above the model's rate are first decimated by an integer with a gentle filter. It may alias, but only onto
 * frequencies that the steep filter removes afterwards. Cheap: filters are designed later.
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

/** The inputs that a stage needs for these outputs. Inputs before 0 are silence. */
function inputsOf({ stride, phases, taps }: Stage, outputs: Span): Span {
  return {
    start: Math.floor((outputs.start * stride) / phases) - taps / 2 + 1,
    end: Math.floor(((outputs.end - 1) * stride) / phases) + taps / 2 + 1,
  };
}

/** The frames of the recording that all stages together need for these 16 kHz samples. */
export function framesFor(stages: readonly Stage[], outputs: Span): Span {
  return stages.reduceRight((span, stage) => inputsOf(stage, atLeastZero(span)), outputs);
}

/** The number of 16 kHz samples that `frames` frames of a recording become. */
export function modelSamples(frames: number, fromRate: number): number {
  return Math.round((frames * MODEL_SAMPLE_RATE) / fromRate);
}

export function atLeastZero({ start, end }: Span): Span {
  return { start: Math.max(0, start), end };
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/** Edges of the pass band and stop band, in cycles per input sample. */
interface Band {
  readonly pass: number;
  readonly stop: number;
}

/** Stop-band attenuation in dB: below the noise of 16-bit samples. */
const ATTENUATION = 102;

/**
 * Odd rates (12,345 Hz) would need thousands of rows. With this many, interpolation between neighbouring rows has an
 * error below -110 dB.
 */
const MAX_ROWS = 1024;

function sizeFilter(phases: number, { pass, stop }: Band): Omit<Stage, 'key' | 'stride'> {
  const width = (ATTENUATION - 7.95) / (14.36 * (stop - pass));
  return {
    phases,
    rows: Math.min(phases, MAX_ROWS),
    taps: 16 * Math.ceil(width / 16),
    cutoff: (pass + stop) / 2,
  };
}

/**
 * An output falls between two inputs. Each fractional offset has its own row of `taps` coefficients: a windowed sinc,
 * sampled at that offset. One extra row gives the last one a neighbour to interpolate with.
 */
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

/** The right half of a Kaiser-windowed sinc, with `perSample` values per input sample. */
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
