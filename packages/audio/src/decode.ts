import { AudioError } from './errors.ts';
import type { Span } from './resample/plan.ts';
import { areas, resample, widen16 } from './resample/resample.ts';
import type { Encoding, PcmFormat } from './wav.ts';

/** A self-contained part of a recording: a range of 16 kHz samples, with all frames needed to compute them. */
export interface PcmBlock {
  readonly format: PcmFormat;
  /** Whole frames, starting at frame `firstFrame` of the recording. */
  readonly data: Uint8Array;
  readonly firstFrame: number;
  readonly outputs: Span;
  /** One channel, or each channel separately. Default: all channels mixed. */
  readonly channel?: number | 'each';
}

/** Decodes one block to 16 kHz: one array per requested channel, or a single one for the mix. */
export function decodeBlock(block: PcmBlock): Float32Array<ArrayBuffer>[] {
  const { format, data, firstFrame, outputs, channel } = block;
  return readChannels(data, format, channel).map((samples) =>
    resample(samples, firstFrame, format.sampleRate, outputs),
  );
}

/** Samples decoded at once, over all channels. */
const BATCH_SAMPLES = 32_768;

const [interleaved, rawArea] = areas;
const raw = new Uint8Array(rawArea.buffer, rawArea.byteOffset, rawArea.byteLength);

/** Bytes to samples of -1..1 at the recording's own rate. */
function readChannels(
  data: Uint8Array,
  { encoding, channels, frameBytes }: PcmFormat,
  channel: PcmBlock['channel'],
): Float32Array[] {
  const frames = Math.floor(data.length / frameBytes);
  const first = typeof channel === 'number' ? channel : 0;
  const decoded = Array.from({ length: channel === 'each' ? channels : 1 }, () => new Float32Array(frames));
  const framesAtOnce = Math.floor(BATCH_SAMPLES / channels);
  for (let at = 0; at < frames; at += framesAtOnce) {
    const count = Math.min(framesAtOnce, frames - at);
    const bytes = raw.subarray(0, count * frameBytes);
    bytes.set(data.subarray(at * frameBytes, (at + count) * frameBytes));
    const samples = interleaved.subarray(0, count * channels);
    decoders[encoding](bytes, samples);
    for (const [i, whole] of decoded.entries()) {
      const target = whole.subarray(at, at + count);
      if (channel === undefined) mixInto(target, samples, channels);
      else pickInto(target, samples, channels, first + i);
    }
  }
  return decoded;
}

function mixInto(mixed: Float32Array, samples: Float32Array, channels: number): void {
  if (channels === 1) {
    mixed.set(samples);
    return;
  }
  const share = 1 / channels;
  for (let frame = 0, at = 0; frame < mixed.length; frame++) {
    let sum = 0;
    for (let channel = 0; channel < channels; channel++) sum += samples[at++] as number;
    mixed[frame] = sum * share;
  }
}

function pickInto(picked: Float32Array, samples: Float32Array, channels: number, channel: number): void {
  for (let frame = 0, at = channel; frame < picked.length; frame++, at += channels) {
    picked[frame] = samples[at] as number;
  }
}

/** Fills `samples` from raw bytes. Both start at a kernel area, so typed views are aligned. */
type Decoder = (raw: Uint8Array, samples: Float32Array) => void;

/** Scaled to -1..1. Typed views are little-endian on every platform that runs the models. */
const decoders: Readonly<Record<Encoding, Decoder>> = {
  pcm8: (raw, samples) => lookUp(raw, unsignedTable, samples),
  pcm16: widen16,
  pcm24: decode24,
  pcm32: decode32,
  float32: (raw, samples) => clip(new Float32Array(raw.buffer, raw.byteOffset, samples.length), samples),
  float64: (raw, samples) => clip(new Float64Array(raw.buffer, raw.byteOffset, samples.length), samples),
  alaw: (raw, samples) => lookUp(raw, alawTable, samples),
  mulaw: (raw, samples) => lookUp(raw, mulawTable, samples),
};

/** 24 dB over full scale. Louder floats mean that the samples are not scaled to -1..1. */
const MAX_FLOAT = 16;

const unsignedTable = Float32Array.from({ length: 256 }, (_, code) => (code - 128) / 128);
const alawTable = Float32Array.from({ length: 256 }, (_, code) => expandAlaw(code) / 32768);
const mulawTable = Float32Array.from({ length: 256 }, (_, code) => expandMulaw(code) / 32768);

function decode24(raw: Uint8Array, samples: Float32Array): void {
  for (let i = 0, at = 0; i < samples.length; i++, at += 3) {
    const low = raw[at] as number;
    const middle = raw[at + 1] as number;
    const high = raw[at + 2] as number;
    // Shifted to the top of 32 bits, where the sign bit is.
    samples[i] = ((high << 24) | (middle << 16) | (low << 8)) * 2 ** -31;
  }
}

function decode32(raw: Uint8Array, samples: Float32Array): void {
  const values = new Int32Array(raw.buffer, raw.byteOffset, samples.length);
  for (let i = 0; i < samples.length; i++) samples[i] = (values[i] as number) * 2 ** -31;
}

/** Clips peaks over full scale, as an export to 16 bits would. */
function clip(values: Float32Array | Float64Array, samples: Float32Array): void {
  for (let i = 0; i < samples.length; i++) {
    const value = values[i] as number;
    if (!(Math.abs(value) <= MAX_FLOAT)) throw notASample(value);
    samples[i] = value > 1 ? 1 : value < -1 ? -1 : value;
  }
}

function notASample(value: number): AudioError {
  const message = Number.isFinite(value)
    ? 'The recording has floating-point samples far beyond full scale (-1 to 1). Scale them down and send it again.'
    : 'The recording has samples that are not numbers (NaN or infinite). Export it again.';
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
