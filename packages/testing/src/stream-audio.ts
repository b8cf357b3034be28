import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { StreamEncoding } from '@undertone/contract';
import { type Encoding, writeWav } from './wav.ts';

const VOICES = new URL('../../../examples/voices/', import.meta.url);
const WAV_HEADER_BYTES = 44;

export const ENCODING_IN_WAV: Record<StreamEncoding, Encoding> = {
  pcm_s16le: 'pcm16',
  pcm_f32le: 'float32',
  mulaw: 'mulaw',
  alaw: 'alaw',
};

export async function voiceNames(): Promise<string[]> {
  return (await readdir(VOICES)).filter((name) => name.endsWith('.wav')).sort();
}

/** So many seconds of an example voice, over and over, at another rate, by somebody else's resampler. */
export async function voiceAt(name: string, rate: number, seconds: number): Promise<Float32Array> {
  const file = fileURLToPath(new URL(name, VOICES));
  const args = ['-loglevel', 'error', '-stream_loop', '-1', '-i', file, '-t', String(seconds)];
  const output = ['-ar', String(rate), '-f', 'f32le', '-'];
  const options = { encoding: 'buffer', maxBuffer: 2 ** 27 } as const;
  const { stdout } = await promisify(execFile)('ffmpeg', [...args, ...output], options);
  return new Float32Array(new Uint8Array(stdout).buffer).subarray(0, Math.round(seconds * rate));
}

/** Raw bytes, as a stream sends them. */
export function encode(samples: ArrayLike<number>, encoding: StreamEncoding = 'pcm_s16le'): Buffer {
  return writeWav(samples, { encoding: ENCODING_IN_WAV[encoding] }).subarray(WAV_HEADER_BYTES);
}

/** Left and right of equal length, frame by frame. */
export function interleave(left: Buffer, right: Buffer, sampleBytes: number): Buffer {
  const both = Buffer.alloc(left.length + right.length);
  for (let at = 0; at < left.length; at += sampleBytes) {
    left.copy(both, 2 * at, at, at + sampleBytes);
    right.copy(both, 2 * at + sampleBytes, at, at + sampleBytes);
  }
  return both;
}

/** Cut into pieces of these sizes in turn. */
export function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] as number;
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
}
