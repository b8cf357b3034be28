import { areas } from './resample/kernel.ts';
import type { Span } from './resample/plan.ts';
import { resample } from './resample/resample.ts';
import { sampleFormats } from './wav/encodings.ts';
import type { PcmFormat } from './wav/header.ts';

/** A part of a recording that can be decoded without the rest of it: 16 kHz samples, and all frames they are made of. */
export interface PcmBlock {
  readonly format: PcmFormat;
  /** Whole frames, the first of them number `firstFrame` of the recording. */
  readonly data: Uint8Array;
  readonly firstFrame: number;
  readonly outputs: Span;
  /** Only this channel; all of them mixed where it is not given. */
  readonly channel?: number;
}

/** One block -> 16 kHz, one list of samples for each channel. All channels are mixed into one, or one is picked. */
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

/** Bytes -> samples of -1..1 at the recording's own rate: one channel of it, or the mean of all. */
function readChannels(
  data: Uint8Array,
  { encoding, channels, frameBytes }: PcmFormat,
  channel: number | undefined,
): Float32Array[] {
  const { decode } = sampleFormats[encoding];
  const frames = Math.floor(data.length / frameBytes);
  const mixed = new Float32Array(frames);
  const framesAtOnce = Math.floor(MOST_AT_ONCE / channels);
  for (let at = 0; at < frames; at += framesAtOnce) {
    const count = Math.min(framesAtOnce, frames - at);
    const bytes = raw.subarray(0, count * frameBytes);
    bytes.set(data.subarray(at * frameBytes, (at + count) * frameBytes));
    const samples = interleaved.subarray(0, count * channels);
    decode(bytes, samples);
    const target = mixed.subarray(at, at + count);
    if (channel === undefined) mixInto(target, samples, channels);
    else pickInto(target, samples, channels, channel);
  }
  return [mixed];
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
