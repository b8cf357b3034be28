import { LENGTH_TOLERANCE_SECONDS } from '@undertone/contract';
import type { Recording } from './entry.ts';
import { to16Bit, wavOf } from './wav.ts';

/** Decoding needs many times the memory of the file, so larger files have no waveform. */
const MAX_DECODED_BYTES = 48 * 1024 * 1024;
/** The lowest rate that every browser supports is enough for a waveform. */
const DECODED_RATE = 8_000;
/** The rate of the channels of a short recording, which are sent separately. */
const SPLIT_RATE = 44_100;
/** Enough for a screen without zoom, and for a detail of a minute with it. */
const PEAKS = { min: 1_200, perSecond: 20, max: 200_000 } as const;
/** Quieter recordings are not amplified to full height, so that silence stays flat. */
const MIN_FULL_PEAK = 0.02;

export async function openRecording(file: File): Promise<Recording> {
  const url = URL.createObjectURL(file);
  if (file.size > MAX_DECODED_BYTES) return { file, url, peaks: [] };
  try {
    const { seconds, channels } = await decode(file, DECODED_RATE);
    const count = Math.min(PEAKS.max, Math.max(PEAKS.min, Math.round(seconds * PEAKS.perSecond)));
    const peaks = channels.map((samples) => peaksOf(samples, count));
    return { file, url, seconds, peaks: normalised(peaks) };
  } catch {
    // The server may still be able to read it.
    return { file, url, peaks: [] };
  }
}

/** Each channel as a file of its own. */
export async function splitChannels(file: File): Promise<File[]> {
  const { channels } = await decode(file, SPLIT_RATE);
  return channels.map((samples, i) => {
    const whole = to16Bit(samples);
    return new File([wavOf([whole], whole.byteLength, SPLIT_RATE)], `channel-${i}.wav`, {
      type: 'audio/wav',
    });
  });
}

async function decode(file: File, rate: number) {
  const sound = await new OfflineAudioContext(1, 1, rate).decodeAudioData(await file.arrayBuffer());
  const channels = Array.from({ length: sound.numberOfChannels }, (_, i) => sound.getChannelData(i));
  return { seconds: sound.duration, channels };
}

/** Amplifies all channels equally, so that a quiet recording is visible. */
function normalised(channels: readonly Float32Array[]): Float32Array[] {
  const loudest = channels.reduce(
    (most, peaks) => peaks.reduce((a, b) => Math.max(a, b), most),
    MIN_FULL_PEAK,
  );
  return channels.map((peaks) => peaks.map((peak) => peak / loudest));
}

function peaksOf(samples: Float32Array, count: number): Float32Array {
  const peaks = new Float32Array(Math.min(count, samples.length));
  for (let i = 0; i < samples.length; i++) {
    const at = Math.floor((i * peaks.length) / samples.length);
    peaks[at] = Math.max(peaks[at] ?? 0, Math.abs(samples[i] ?? 0));
  }
  return peaks;
}

/** False if both channels have the same waveform: the same voice recorded twice. */
export function channelsDiffer({ peaks: [first, second] }: Recording): boolean {
  if (first === undefined) return true; // not decoded, so unknown
  if (second === undefined) return false;
  return first.some((peak, i) => Math.abs(peak - (second[i] ?? 0)) > 0.02);
}

export function isAtMost(seconds: number, limit: number): boolean {
  return seconds <= limit + LENGTH_TOLERANCE_SECONDS;
}
