import {
  cutIntoBlocks,
  decodeBlock,
  Ffmpeg,
  openSound,
  type RecordingSource,
  type Sound,
} from '../../src/index.ts';

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

/** Similar to a sung vowel: harmonics of a gliding 120 Hz, all below 3.5 kHz. */
export function voice(seconds: number, sampleRate: number): Float32Array<ArrayBuffer> {
  return Float32Array.from({ length: Math.round(seconds * sampleRate) }, (_, i) => {
    const t = i / sampleRate;
    const phase = 2 * Math.PI * (120 * t + 5 * Math.sin(2 * t));
    // Each sine from the two before it.
    const twice = 2 * Math.cos(phase);
    let [before, sine, sum] = [0, Math.sin(phase), 0];
    for (let harmonic = 1; harmonic <= 24; harmonic++) {
      sum += sine / harmonic;
      [before, sine] = [sine, twice * sine - before];
    }
    return 0.3 * sum * (0.6 + 0.4 * Math.sin(2 * Math.PI * 3 * t));
  });
}

/** Signal-to-noise ratio in dB within the given range. */
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

/** In dB. */
export function power(samples: Float32Array): number {
  return 10 * Math.log10(samples.reduce((sum, value) => sum + value ** 2, 0) / samples.length);
}

/** A source that yields pieces of the given sizes in turn. */
export function inPieces(bytes: Uint8Array, ...sizes: number[]): RecordingSource {
  return {
    size: bytes.length,
    async *read(start = 0, end = bytes.length) {
      for (let at = start, turn = 0; at < end; turn++) {
        const size = sizes[turn % sizes.length] ?? bytes.length;
        yield bytes.subarray(at, Math.min(at + size, end));
        at += size;
      }
    },
  };
}

const noFfmpeg = new Ffmpeg({ path: null });

/** Opens a recording, by default without ffmpeg. */
export function open(source: RecordingSource, ffmpeg: Ffmpeg = noFfmpeg): Promise<Sound> {
  return openSound(source, { ffmpeg, kind: 'clip' });
}

/** Decodes a whole recording block by block. */
export async function decodeAll({ pieces, format }: Sound, mostBytes?: number): Promise<Float32Array> {
  const parts: Float32Array[] = [];
  for await (const block of cutIntoBlocks(pieces, format, mostBytes)) parts.push(...decodeBlock(block));
  return concatenate(parts);
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

export function concatenate(parts: readonly Float32Array[]): Float32Array {
  const whole = new Float32Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
