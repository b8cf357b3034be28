import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { StreamEncoding } from '@undertone/contract';
import { VOICES } from './paths.ts';
import { type Encoding, WAV_HEADER_BYTES, writeWav } from './wav.ts';

export const ENCODING_IN_WAV: Record<StreamEncoding, Encoding> = {
  pcm_s16le: 'pcm16',
  pcm_f32le: 'float32',
  mulaw: 'mulaw',
  alaw: 'alaw',
};

export async function voiceNames(): Promise<string[]> {
  return (await readdir(VOICES)).filter((name) => name.endsWith('.wav')).sort();
}

/** An example voice, repeated to the given length and resampled by ffmpeg rather than by our own code. */
export async function voiceAt(name: string, rate: number, seconds: number): Promise<Float32Array> {
  const file = join(VOICES, name);
  const args = ['-loglevel', 'error', '-stream_loop', '-1', '-i', file, '-t', String(seconds)];
  const output = ['-ar', String(rate), '-f', 'f32le', '-'];
  const options = { encoding: 'buffer', maxBuffer: 2 ** 27 } as const;
  const { stdout } = await promisify(execFile)('ffmpeg', [...args, ...output], options);
  return new Float32Array(new Uint8Array(stdout).buffer).subarray(0, Math.round(seconds * rate));
}

/** Raw bytes, as sent over a stream. */
export function encode(samples: ArrayLike<number>, encoding: StreamEncoding = 'pcm_s16le'): Buffer {
  return writeWav(samples, { encoding: ENCODING_IN_WAV[encoding] }).subarray(WAV_HEADER_BYTES);
}

/** Interleaves two channels of equal length. */
export function interleave(left: Buffer, right: Buffer, sampleBytes: number): Buffer {
  const both = Buffer.alloc(left.length + right.length);
  for (let at = 0; at < left.length; at += sampleBytes) {
    left.copy(both, 2 * at, at, at + sampleBytes);
    right.copy(both, 2 * at + sampleBytes, at, at + sampleBytes);
  }
  return both;
}

/** Cuts bytes into pieces, cycling through these sizes. */
export function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] as number;
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
}
