import { LENGTH_TOLERANCE_SECONDS } from '@undertone/contract';

/** A file, and what the browser knows about it. */
export interface Recording {
  readonly file: File;
  /** For the player. */
  readonly url: string;
  /** Undefined if the browser cannot decode the file. */
  readonly seconds?: number;
  /** The waveform of each channel as peaks of short intervals; empty if it was not decoded. */
  readonly peaks: readonly Float32Array[];
}

/** Decoding needs many times the memory of the file, so larger files have no waveform. */
const MAX_DECODED_BYTES = 48 * 1024 * 1024;
/** The lowest rate that every browser supports is enough for a waveform. */
const DECODED_RATE = 8_000;
const PEAKS = 1_200;
/** Quieter recordings are not amplified to full height, so that silence stays flat. */
const MIN_FULL_PEAK = 0.02;

export async function openRecording(file: File): Promise<Recording> {
  const url = URL.createObjectURL(file);
  if (file.size > MAX_DECODED_BYTES) return { file, url, peaks: [] };
  try {
    const decoder = new OfflineAudioContext(1, 1, DECODED_RATE);
    const sound = await decoder.decodeAudioData(await file.arrayBuffer());
    const channels = Array.from({ length: sound.numberOfChannels }, (_, i) => sound.getChannelData(i));
    const peaks = channels.map((samples) => peaksOf(samples, PEAKS));
    return { file, url, seconds: sound.duration, peaks: normalised(peaks) };
  } catch {
    // The server may still be able to read it.
    return { file, url, peaks: [] };
  }
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

/** Microphone audio as 16-bit mono WAV. */
export function wavOf(pieces: readonly Uint8Array<ArrayBuffer>[], sampleRate: number): Blob {
  const bytes = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
  const header = new DataView(new ArrayBuffer(44));
  const text = (at: number, word: string) => {
    for (let i = 0; i < word.length; i++) header.setUint8(at + i, word.charCodeAt(i));
  };
  text(0, 'RIFF');
  header.setUint32(4, 36 + bytes, true);
  text(8, 'WAVEfmt ');
  header.setUint32(16, 16, true);
  header.setUint16(20, 1, true);
  header.setUint16(22, 1, true);
  header.setUint32(24, sampleRate, true);
  header.setUint32(28, sampleRate * 2, true);
  header.setUint16(32, 2, true);
  header.setUint16(34, 16, true);
  text(36, 'data');
  header.setUint32(40, bytes, true);
  return new Blob([header, ...pieces], { type: 'audio/wav' });
}
