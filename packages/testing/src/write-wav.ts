import type { Encoding } from '../../audio/src/wav.ts';

export type { Encoding };
export const encodings: readonly Encoding[] = [
  'pcm8',
  'pcm16',
  'pcm24',
  'pcm32',
  'float32',
  'float64',
  'alaw',
  'mulaw',
];

export interface WavOptions {
  encoding?: Encoding;
  sampleRate?: number;
  /** The same sound goes into each of them. */
  channels?: number;
  container?: 'RIFF' | 'RF64' | 'BW64';
  extensible?: boolean;
  /** Chunks between fmt and data, and after data. */
  before?: ReadonlyArray<readonly [id: string, body: Uint8Array]>;
  after?: ReadonlyArray<readonly [id: string, body: Uint8Array]>;
  /** What the header claims instead of the true size of the sound. */
  dataSize?: number;
}

const shapes: Record<Encoding, { tag: number; bytes: number }> = {
  pcm8: { tag: 1, bytes: 1 },
  pcm16: { tag: 1, bytes: 2 },
  pcm24: { tag: 1, bytes: 3 },
  pcm32: { tag: 1, bytes: 4 },
  float32: { tag: 3, bytes: 4 },
  float64: { tag: 3, bytes: 8 },
  alaw: { tag: 6, bytes: 1 },
  mulaw: { tag: 7, bytes: 1 },
};

/** A WAV file of mono samples in -1..1, in every form the reader knows. */
export function writeWav(samples: ArrayLike<number>, options: WavOptions = {}): Buffer {
  const { encoding = 'pcm16', sampleRate = 44_100, channels = 1, container = 'RIFF' } = options;
  const data = encode(samples, encoding, channels);
  const size64 = Buffer.alloc(28);
  size64.writeBigUInt64LE(BigInt(data.length), 8);
  const isRiff = container === 'RIFF';
  const body = Buffer.concat([
    Buffer.from('WAVE'),
    isRiff ? Buffer.alloc(0) : chunk('ds64', size64),
    chunk('fmt ', formatBody(encoding, sampleRate, channels, options.extensible ?? false)),
    ...(options.before ?? []).map(([id, bytes]) => chunk(id, bytes)),
    chunk('data', data, options.dataSize ?? (isRiff ? data.length : 0xffff_ffff)),
    ...(options.after ?? []).map(([id, bytes]) => chunk(id, bytes)),
  ]);
  return chunk(container, body, isRiff ? body.length : 0xffff_ffff);
}

export function chunk(id: string, body: Uint8Array, size = body.length): Buffer {
  const head = Buffer.from(`${id}    `);
  head.writeUInt32LE(size, 4);
  return Buffer.concat([head, body, Buffer.alloc(body.length % 2)]);
}

function formatBody(encoding: Encoding, sampleRate: number, channels: number, extensible: boolean): Buffer {
  const { tag, bytes } = shapes[encoding];
  const body = Buffer.alloc(extensible ? 40 : 16);
  body.writeUInt16LE(extensible ? 0xfffe : tag, 0);
  body.writeUInt16LE(channels, 2);
  body.writeUInt32LE(sampleRate, 4);
  body.writeUInt32LE((sampleRate * channels * bytes) % 2 ** 32, 8);
  body.writeUInt16LE((channels * bytes) % 2 ** 16, 12);
  body.writeUInt16LE(bytes * 8, 14);
  if (extensible) {
    body.writeUInt16LE(22, 16);
    body.writeUInt16LE(bytes * 8, 18);
    body.writeUInt16LE(tag, 24);
    Buffer.from('000000001000800000aa00389b71', 'hex').copy(body, 26);
  }
  return body;
}

function encode(samples: ArrayLike<number>, encoding: Encoding, channels: number): Buffer {
  const { bytes } = shapes[encoding];
  const data = Buffer.alloc(samples.length * channels * bytes);
  for (let i = 0, at = 0; i < samples.length; i++) {
    for (let channel = 0; channel < channels; channel++, at += bytes) {
      writeSample(data, at, samples[i] as number, encoding);
    }
  }
  return data;
}

function writeSample(data: Buffer, at: number, value: number, encoding: Encoding): void {
  if (encoding === 'float32') data.writeFloatLE(value, at);
  else if (encoding === 'float64') data.writeDoubleLE(value, at);
  else if (encoding === 'pcm8') data.writeUInt8(whole(value, 8) + 128, at);
  else if (encoding === 'alaw') data.writeUInt8(compressAlaw(whole(value, 16)), at);
  else if (encoding === 'mulaw') data.writeUInt8(compressMulaw(whole(value, 16)), at);
  else data.writeIntLE(whole(value, shapes[encoding].bytes * 8), at, shapes[encoding].bytes);
}

function whole(value: number, bits: number): number {
  const full = 2 ** (bits - 1);
  return Math.max(-full, Math.min(full - 1, Math.round(value * full)));
}

function compressAlaw(value: number): number {
  const size = Math.min(value < 0 ? -value - 1 : value, 32767);
  const exponent = Math.max(0, Math.floor(Math.log2(Math.max(1, size))) - 7);
  const mantissa = (size >> (exponent === 0 ? 4 : exponent + 3)) & 15;
  return ((value < 0 ? 0 : 0x80) | (exponent << 4) | mantissa) ^ 0x55;
}

function compressMulaw(value: number): number {
  const size = Math.min(Math.abs(value), 32635) + 132;
  const exponent = Math.floor(Math.log2(size)) - 7;
  const mantissa = (size >> (exponent + 3)) & 15;
  return ~((value < 0 ? 0x80 : 0) | (exponent << 4) | mantissa) & 0xff;
}
