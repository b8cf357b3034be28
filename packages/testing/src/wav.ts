import type { Encoding } from '@undertone/audio';

export type { Encoding };
/** Header of a plain file: RIFF, `fmt ` of 16 bytes, `data`. */
export const WAV_HEADER_BYTES = 44;

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
  /** Each gets the same sound. */
  channels?: number;
  container?: 'RIFF' | 'RF64' | 'BW64';
  extensible?: boolean;
  /** Chunks between fmt and data, and after data. */
  before?: ReadonlyArray<readonly [id: string, body: Uint8Array]>;
  after?: ReadonlyArray<readonly [id: string, body: Uint8Array]>;
  /** The size in the header, instead of the true one. */
  dataSize?: number;
}

export interface SoundOptions {
  seconds?: number;
  rate?: number;
  channels?: number;
  /** The sample at a time, from -1 to 1. */
  sound?: (second: number) => number;
}

const syllables = (second: number) =>
  0.3 * Math.sin(2 * Math.PI * 180 * second) * Math.sin(2 * Math.PI * 3 * second);

export function samplesOf({ seconds = 5, rate = 44_100, sound = syllables }: SoundOptions = {}): number[] {
  const samples: number[] = [];
  for (let i = 0; i < Math.round(seconds * rate); i++) samples.push(sound(i / rate));
  return samples;
}

/** A 16-bit PCM file of a generated sound. */
export function wav(options: SoundOptions = {}): Buffer {
  const { rate = 44_100, channels = 1 } = options;
  return writeWav(samplesOf(options), { sampleRate: rate, channels });
}

/** Ten seconds of sound, repeated, at 8 kHz: a long recording that is quick to make. */
export function longWav(seconds: number): Buffer {
  const rate = 8_000;
  const loop = wav({ seconds: 10, rate }).subarray(WAV_HEADER_BYTES);
  const dataBytes = seconds * rate * 2;
  const header = wavHeader({ rate, channels: 1, bits: 16, dataBytes });
  return Buffer.concat([header, Buffer.alloc(dataBytes, loop)]);
}

/** Silence: 16 bit, mono, 16 kHz. */
export function silentWav(seconds: number): Buffer {
  const rate = 16_000;
  const dataBytes = Math.round(seconds * rate) * 2;
  return Buffer.concat([wavHeader({ rate, channels: 1, bits: 16, dataBytes }), Buffer.alloc(dataBytes)]);
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

/** A WAV file of mono samples in -1..1, in every format the reader supports. */
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
  const write = writers[encoding];
  for (let i = 0, at = 0; i < samples.length; i++) {
    const value = samples[i] as number;
    for (let channel = 0; channel < channels; channel++, at += bytes) write(data, value, at);
  }
  return data;
}

const writers: Record<Encoding, (data: Buffer, value: number, at: number) => unknown> = {
  pcm8: (data, value, at) => data.writeUInt8(whole(value, 8) + 128, at),
  pcm16: (data, value, at) => data.writeInt16LE(whole(value, 16), at),
  pcm24: (data, value, at) => data.writeIntLE(whole(value, 24), at, 3),
  pcm32: (data, value, at) => data.writeInt32LE(whole(value, 32), at),
  float32: (data, value, at) => data.writeFloatLE(value, at),
  float64: (data, value, at) => data.writeDoubleLE(value, at),
  alaw: (data, value, at) => data.writeUInt8(compressAlaw(whole(value, 16)), at),
  mulaw: (data, value, at) => data.writeUInt8(compressMulaw(whole(value, 16)), at),
};

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

/** A header that may claim anything, for damaged and hostile files. */
export function wavHeader(h: {
  format?: number;
  rate: number;
  channels: number;
  bits: number;
  dataBytes: number;
}): Buffer {
  const frame = (h.channels * h.bits) / 8;
  const header = Buffer.alloc(44);
  header.write('RIFF', 0);
  header.writeUInt32LE((36 + h.dataBytes) >>> 0, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(h.format ?? 1, 20);
  header.writeUInt16LE(h.channels, 22);
  header.writeUInt32LE(h.rate, 24);
  header.writeUInt32LE((h.rate * frame) >>> 0, 28);
  header.writeUInt16LE(frame & 0xffff, 32);
  header.writeUInt16LE(h.bits, 34);
  header.write('data', 36);
  header.writeUInt32LE(h.dataBytes >>> 0, 40);
  return header;
}
