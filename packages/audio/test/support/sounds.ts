import { concatenate } from '../../src/resample/stage.ts';

/** Repeatable randomness in 0..1 (mulberry32). */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function sine(
  seconds: number,
  sampleRate: number,
  frequency: number,
  amplitude = 0.5,
): Float32Array<ArrayBuffer> {
  const step = (2 * Math.PI * frequency) / sampleRate;
  return Float32Array.from(
    { length: Math.round(seconds * sampleRate) },
    (_, i) => amplitude * Math.sin(step * i),
  );
}

/** Something like a sung vowel: harmonics of a gliding 120 Hz, all of them below 3.5 kHz. */
export function voice(seconds: number, sampleRate: number): Float32Array<ArrayBuffer> {
  return Float32Array.from({ length: Math.round(seconds * sampleRate) }, (_, i) => {
    const t = i / sampleRate;
    const phase = 2 * Math.PI * (120 * t + 5 * Math.sin(2 * t));
    let sum = 0;
    for (let harmonic = 1; harmonic <= 24; harmonic++) sum += Math.sin(harmonic * phase) / harmonic;
    return 0.3 * sum * (0.6 + 0.4 * Math.sin(2 * Math.PI * 3 * t));
  });
}

/** How much stronger the expected signal is than the difference, in dB, within the given range. */
export function signalToNoise(
  expected: ArrayLike<number>,
  actual: ArrayLike<number>,
  from = 0,
  to = expected.length,
): number {
  let signal = 0;
  let noise = 0;
  for (let i = from; i < to; i++) {
    signal += (expected[i] as number) ** 2;
    noise += ((expected[i] as number) - (actual[i] as number)) ** 2;
  }
  return 10 * Math.log10(signal / noise);
}

/** The power of a signal in dB. */
export function power(samples: Float32Array): number {
  return 10 * Math.log10(samples.reduce((sum, value) => sum + value ** 2, 0) / samples.length);
}

/** Bytes as a stream, cut into pieces of the given sizes in turn. */
export async function* inPieces(bytes: Uint8Array, ...sizes: number[]): AsyncGenerator<Uint8Array> {
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] ?? bytes.length;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

export async function collect(chunks: AsyncIterable<Float32Array>): Promise<Float32Array> {
  const parts: Float32Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return concatenate(parts);
}
