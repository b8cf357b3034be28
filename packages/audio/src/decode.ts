import { AudioError } from './errors.ts';
import { areas, widen16 } from './resample/kernel.ts';
import type { Span } from './resample/plan.ts';
import { resample } from './resample/resample.ts';
import type { Encoding, PcmFormat } from './wav.ts';

/** A part of a recording that can be decoded without the rest of it: 16 kHz samples, and all frames they are made of. */
export interface PcmBlock {
  readonly format: PcmFormat;
  /** Whole frames, the first of them number `firstFrame` of the recording. */
  readonly data: Uint8Array;
  readonly firstFrame: number;
  readonly outputs: Span;
  /** Only this channel, or each of them apart; all of them mixed where it is not given. */
  readonly channel?: number | 'each';
}

/** One block -> 16 kHz, one list of samples for each channel that is heard. */
export function decodeBlock(block: PcmBlock): Float32Array<ArrayBuffer>[] {
  const { format, data, firstFrame, outputs, channel } = block;
  return readChannels(data, format, channel).map((samples) =>
    resample(samples, firstFrame, format.sampleRate, outputs),
  );
}

/** Samples of all channels together that are decoded at once. */
const MOST_AT_ONCE = 32_768;

const [interleaved, rawArea] = areas;
const raw = new Uint8Array(rawArea.buffer, rawArea.byteOffset, rawArea.byteLength);

/** Bytes -> samples of -1..1 at the recording's own rate: one channel of it, each of them, or the mean of all. */
function readChannels(
  data: Uint8Array,
  { encoding, channels, frameBytes }: PcmFormat,
  channel: PcmBlock['channel'],
): Float32Array[] {
  const frames = Math.floor(data.length / frameBytes);
  const first = typeof channel === 'number' ? channel : 0;
  const heard = Array.from({ length: channel === 'each' ? channels : 1 }, () => new Float32Array(frames));
  const framesAtOnce = Math.floor(MOST_AT_ONCE / channels);
  for (let at = 0; at < frames; at += framesAtOnce) {
    const count = Math.min(framesAtOnce, frames - at);
    const bytes = raw.subarray(0, count * frameBytes);
    bytes.set(data.subarray(at * frameBytes, (at + count) * frameBytes));
    const samples = interleaved.subarray(0, count * channels);
    decoders[encoding](bytes, samples);
    for (const [i, whole] of heard.entries()) {
      const target = whole.subarray(at, at + count);
      if (channel === undefined) mixInto(target, samples, channels);
      else pickInto(target, samples, channels, first + i);
    }
  }
  return heard;
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

/** Fills `samples` from raw bytes. Both begin where an area of the kernel does, so that typed views line up. */
type Decoder = (raw: Uint8Array, samples: Float32Array) => void;

/** Every encoding, scaled to -1..1. Typed views are little-endian on all machines Node runs models on. */
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
