import { DISCRETE_LIMITS, LENGTH_TOLERANCE_SECONDS, SAMPLE_RATE } from '@undertone/contract';
import { rangeProblem } from './config.ts';
import type { Call } from './http.ts';

/** The documented JSON format: 4.5 seconds at 44,100 Hz. */
const JSON_SAMPLES = 198_450;
const HEADER_BYTES = 44;
const FLOAT_BYTES = 4;

export function samplesProblems(samples: ArrayLike<number>, sampleRate: number): (string | undefined)[] {
  const rate = rangeProblem('sampleRate', sampleRate, { ...SAMPLE_RATE, unit: 'hertz' });
  return rate ? [rate] : [lengthProblem(samples.length / sampleRate, sampleRate) ?? valueProblem(samples)];
}

/** Body and headers of a call with these samples. */
export function encodeSamples(
  samples: ArrayLike<number>,
  sampleRate: number,
): Pick<Call, 'body' | 'headers'> {
  const scale = scaleOf(samples);
  const scaled = (sample: number) => sample / scale;
  if (sampleRate === DISCRETE_LIMITS.payloadSampleRate && samples.length === JSON_SAMPLES) {
    // A JSON string that contains a JSON object.
    const body = JSON.stringify(JSON.stringify({ payload: [Array.from(samples, scaled)] }));
    return { body, headers: { 'content-type': 'application/json' } };
  }
  const wav = floatWav(Float32Array.from(samples, scaled), sampleRate);
  const body = new FormData();
  body.append('file', new Blob([wav], { type: 'audio/wav' }), 'samples.wav');
  return { body };
}

/** A mono WAV of 32-bit floats, which holds 16-bit samples exactly. */
function floatWav(samples: Float32Array, sampleRate: number): ArrayBuffer {
  const dataBytes = samples.length * FLOAT_BYTES;
  const view = new DataView(new ArrayBuffer(HEADER_BYTES + dataBytes));
  const text = (at: number, letters: string) => {
    for (let i = 0; i < letters.length; i++) view.setUint8(at + i, letters.charCodeAt(i));
  };
  text(0, 'RIFF');
  view.setUint32(4, HEADER_BYTES - 8 + dataBytes, true);
  text(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, 3, true); // Floats.
  view.setUint16(22, 1, true); // Mono.
  view.setUint32(24, sampleRate, true);
  view.setUint32(28, sampleRate * FLOAT_BYTES, true);
  view.setUint16(32, FLOAT_BYTES, true);
  view.setUint16(34, 8 * FLOAT_BYTES, true);
  text(36, 'data');
  view.setUint32(40, dataBytes, true);
  samples.forEach((sample, i) => {
    view.setFloat32(HEADER_BYTES + FLOAT_BYTES * i, sample, true);
  });
  return view.buffer as ArrayBuffer;
}

function lengthProblem(seconds: number, sampleRate: number): string | undefined {
  const { minSeconds, maxSeconds } = DISCRETE_LIMITS;
  if (seconds >= minSeconds - LENGTH_TOLERANCE_SECONDS && seconds <= maxSeconds + LENGTH_TOLERANCE_SECONDS) {
    return undefined;
  }
  const limits = `pass ${minSeconds} to ${maxSeconds} seconds`;
  return `At ${sampleRate} Hz, the samples last ${seconds.toFixed(2)} seconds: ${limits}, and their sampleRate.`;
}

function valueProblem(samples: ArrayLike<number>): string | undefined {
  const max = DISCRETE_LIMITS.maxSampleMagnitude * scaleOf(samples);
  for (let i = 0; i < samples.length; i++) {
    const sample = samples[i];
    if (typeof sample === 'number' && Math.abs(sample) <= max) continue;
    return `Sample ${i} is ${sample}: pass numbers from -1 to 1, or an Int16Array.`;
  }
  return undefined;
}

/** 16-bit samples are taken as they are; the scale of other integers is not known. */
function scaleOf(samples: ArrayLike<number>): number {
  return samples instanceof Int16Array ? 2 ** 15 : 1;
}
