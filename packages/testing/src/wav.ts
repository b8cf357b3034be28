import { writeWav } from './write-wav.ts';

export interface WavOptions {
  seconds?: number;
  rate?: number;
  channels?: number;
  /** One sample at a time, from -1 to 1. */
  sound?: (second: number) => number;
}

const syllables = (second: number) =>
  0.3 * Math.sin(2 * Math.PI * 180 * second) * Math.sin(2 * Math.PI * 3 * second);

export function samplesOf({ seconds = 5, rate = 44_100, sound = syllables }: WavOptions = {}): number[] {
  return Array.from({ length: Math.round(seconds * rate) }, (_, i) => sound(i / rate));
}

/** A 16-bit PCM file. */
export function wav(options: WavOptions = {}): Buffer {
  const { rate = 44_100, channels = 1 } = options;
  return writeWav(samplesOf(options), { sampleRate: rate, channels });
}

/** A header that may claim anything. */
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
