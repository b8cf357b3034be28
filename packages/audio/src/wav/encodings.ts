import { AudioError } from '../errors.ts';
import { widen16 } from '../resample/kernel.ts';

export type Encoding = 'pcm8' | 'pcm16' | 'pcm24' | 'pcm32' | 'float32' | 'float64' | 'alaw' | 'mulaw';

export interface SampleFormat {
  readonly bytes: number;
  /** Fills `samples` from raw bytes. Both lie in areas of the kernel, at their beginning, so that typed views line up. */
  decode(raw: Uint8Array, samples: Float32Array): void;
}

/** Every encoding, scaled to -1..1. Typed views are little-endian on all machines Node runs models on. */
export const sampleFormats: Readonly<Record<Encoding, SampleFormat>> = {
  pcm8: { bytes: 1, decode: (raw, samples) => lookUp(raw, unsignedTable, samples) },
  pcm16: { bytes: 2, decode: widen16 },
  pcm24: { bytes: 3, decode: decode24 },
  pcm32: { bytes: 4, decode: decode32 },
  float32: {
    bytes: 4,
    decode: (raw, samples) => clip(new Float32Array(raw.buffer, raw.byteOffset, samples.length), samples),
  },
  float64: {
    bytes: 8,
    decode: (raw, samples) => clip(new Float64Array(raw.buffer, raw.byteOffset, samples.length), samples),
  },
  alaw: { bytes: 1, decode: (raw, samples) => lookUp(raw, alawTable, samples) },
  mulaw: { bytes: 1, decode: (raw, samples) => lookUp(raw, mulawTable, samples) },
};

/** Twenty-four decibels over full scale: beyond it a file has something else in it than -1..1 samples. */
const LOUDEST_FLOAT = 16;

const unsignedTable = Float32Array.from({ length: 256 }, (_, code) => (code - 128) / 128);
const alawTable = Float32Array.from({ length: 256 }, (_, code) => expandAlaw(code) / 32768);
const mulawTable = Float32Array.from({ length: 256 }, (_, code) => expandMulaw(code) / 32768);

function decode24(raw: Uint8Array, samples: Float32Array): void {
  for (let i = 0, at = 0; i < samples.length; i++, at += 3) {
    const low = raw[at] as number;
    const middle = raw[at + 1] as number;
    const high = raw[at + 2] as number;
    // Built at the top of 32 bits, where the sign bit is.
    samples[i] = ((high << 24) | (middle << 16) | (low << 8)) * 2 ** -31;
  }
}

function decode32(raw: Uint8Array, samples: Float32Array): void {
  const values = new Int32Array(raw.buffer, raw.byteOffset, samples.length);
  for (let i = 0; i < samples.length; i++) samples[i] = (values[i] as number) * 2 ** -31;
}

/** Mixing desks leave peaks over full scale; like any 16-bit copy of them, ours is clipped. */
function clip(values: Float32Array | Float64Array, samples: Float32Array): void {
  for (let i = 0; i < samples.length; i++) {
    const value = values[i] as number;
    if (!(Math.abs(value) <= LOUDEST_FLOAT)) throw notASample(value);
    samples[i] = value > 1 ? 1 : value < -1 ? -1 : value;
  }
}

function notASample(value: number): AudioError {
  const message = Number.isFinite(value)
    ? `The recording has floating-point samples far beyond full scale, which is -1 to 1. Scale them down and send it again.`
    : `The recording has samples that are not numbers (NaN or infinite). Export it again.`;
  return new AudioError('unreadable_audio', message);
}

function lookUp(raw: Uint8Array, table: Float32Array, samples: Float32Array): void {
  for (let i = 0; i < samples.length; i++) samples[i] = table[raw[i] as number] as number;
}

/** ITU-T G.711, A-law: sign, three bits of exponent, four of mantissa, even bits inverted. */
function expandAlaw(code: number): number {
  const bits = code ^ 0x55;
  const exponent = (bits >> 4) & 7;
  const mantissa = ((bits & 15) << 4) + 8;
  const size = exponent === 0 ? mantissa : (mantissa + 256) << (exponent - 1);
  return bits & 0x80 ? size : -size;
}

/** ITU-T G.711, mu-law: all bits inverted, and a bias of 132 that makes every step a shift. */
function expandMulaw(code: number): number {
  const bits = ~code & 0xff;
  const size = ((((bits & 15) << 3) + 132) << ((bits >> 4) & 7)) - 132;
  return bits & 0x80 ? -size : size;
}
