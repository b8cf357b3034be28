import { SAMPLE_RATE } from '@undertone/contract';
import { ByteReader, type RecordingSource } from './byte-reader.ts';
import { AudioError } from './errors.ts';
import { type Ffmpeg, unreadable } from './ffmpeg/ffmpeg.ts';
import { streamableMp4 } from './ffmpeg/mp4.ts';
import type { Kind } from './ffmpeg/slots.ts';
import { type PcmFormat, readSound, readWavHeader, type WavHeader } from './wav.ts';

/** The samples of a recording as bytes, not decoded yet. */
export interface Sound {
  readonly format: PcmFormat;
  /** Of any length, cut anywhere. Can be read once; leaving the loop early closes the source. */
  readonly pieces: AsyncIterable<Uint8Array>;
  /** Closes the source where `pieces` was not read. */
  close(): void;
}

export interface SoundOptions {
  readonly ffmpeg: Ffmpeg;
  readonly kind: Kind;
  readonly signal?: AbortSignal | undefined;
}

/** Any recording -> its samples. WAV is read here, every other format through ffmpeg. */
export async function openSound(source: RecordingSource, options: SoundOptions): Promise<Sound> {
  const reader = new ByteReader(source.read(), options.signal);
  try {
    const start = await reader.peek(SNIFF_BYTES);
    if (start.length === 0) throw unreadable('The recording is empty.');
    const container = sniff(start);
    const header = container === 'wav' ? await readWavHeader(reader) : null;
    if (header !== null) return soundOf(reader, header);
    reader.close();
    return await openWithFfmpeg(container, source, options);
  } catch (error) {
    reader.close();
    throw error;
  }
}

async function openWithFfmpeg(
  container: string,
  source: RecordingSource,
  { ffmpeg, kind, signal }: SoundOptions,
): Promise<Sound> {
  const path = await ffmpeg.find();
  if (path === null) throw needsFfmpeg(container);
  const bytes = new ByteReader(container === 'mp4' ? streamableMp4(source) : source.read(), signal);
  const reader = new ByteReader(ffmpeg.toWav(path, bytes.rest(), { kind, signal }), signal);
  try {
    const header = (await reader.peek(1)).length > 0 ? await readWavHeader(reader) : null;
    if (header === null) throw unreadable('The recording has no sound in it.');
    return soundOf(reader, header);
  } catch (error) {
    bytes.close();
    reader.close();
    throw error;
  }
}

function soundOf(reader: ByteReader, header: WavHeader): Sound {
  checkSampleRate(header.format.sampleRate);
  return { format: header.format, pieces: readSound(reader, header), close: () => reader.close() };
}

function checkSampleRate(rate: number): void {
  const { min, max } = SAMPLE_RATE;
  if (rate < min) {
    throw new AudioError(
      'sample_rate_too_low',
      `The sample rate is ${rate} Hz; at least ${min} Hz are needed. Record at a higher rate.`,
      { min_sample_rate: min, actual_sample_rate: rate },
    );
  }
  if (rate > max) {
    throw new AudioError(
      'sample_rate_too_high',
      `The sample rate is ${rate} Hz; at most ${max} Hz are accepted. Resample the recording.`,
      { max_sample_rate: max, actual_sample_rate: rate },
    );
  }
}

function needsFfmpeg(container: string): AudioError {
  const kinds: Record<string, string> = {
    wav: 'compressed WAV',
    unknown: 'in a format that is not known here',
  };
  return new AudioError(
    'unsupported_media_type',
    `This recording is ${kinds[container] ?? container}. This server reads only WAV until ffmpeg is installed on it. ` +
      'Send WAV, or install ffmpeg there (apt-get install ffmpeg, brew install ffmpeg).',
  );
}

/**
 * What a recording is, told by its first bytes: names and content types are often wrong.
 * The list need not be complete, only good enough for clear messages: ffmpeg looks for itself.
 */
const signatures: ReadonlyArray<readonly [name: string, at: number, bytes: string]> = [
  ['flac', 0, 'fLaC'],
  ['ogg', 0, 'OggS'],
  ['mp3', 0, 'ID3'],
  ['mp4', 4, 'ftyp'],
  ['webm', 0, '\x1a\x45\xdf\xa3'],
  ['amr', 0, '#!AMR'],
  ['caf', 0, 'caff'],
  ['au', 0, '.snd'],
  ['aiff', 8, 'AIFF'],
  ['aiff', 8, 'AIFC'],
  ['wma', 0, '\x30\x26\xb2\x75\x8e\x66\xcf\x11'],
  ['w64', 0, 'riff\x2e\x91\xcf\x11'],
  ['flv', 0, 'FLV\x01'],
];

export const SNIFF_BYTES = 12;

export function sniff(bytes: Uint8Array): string {
  const start = String.fromCharCode(...bytes.subarray(0, SNIFF_BYTES));
  if (/^(RIFF|RF64|BW64)/.test(start) && start.startsWith('WAVE', 8)) return 'wav';
  for (const [name, at, signature] of signatures) {
    if (start.startsWith(signature, at)) return name;
  }
  // MPEG frames start with eleven set bits; the layer bits tell AAC (00) from MP3.
  const [first, second] = bytes;
  if (first === 0xff && second !== undefined && (second & 0xe0) === 0xe0) {
    return (second & 0x06) === 0 ? 'aac' : 'mp3';
  }
  return 'unknown';
}
