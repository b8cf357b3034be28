import { ByteReader, memorySource, type RecordingSource } from './byte-reader.ts';
import { collectClip } from './clip.ts';
import { DecoderDiedError, needsFfmpeg, unreadable } from './errors.ts';
import type { Ffmpeg } from './ffmpeg/ffmpeg.ts';
import { streamableMp4 } from './ffmpeg/mp4.ts';
import type { Kind } from './ffmpeg/slots.ts';
import { checkSampleRate, isWav, type PcmFormat, readSound, readWavHeader, type WavHeader } from './wav.ts';

/** The samples of a recording as bytes, not decoded yet. */
export interface Sound {
  readonly format: PcmFormat;
  /** Pieces of any length, not aligned to samples. Readable once; leaving the loop early closes the source. */
  readonly pieces: AsyncIterable<Uint8Array>;
  /** Closes the source if `pieces` was not read. */
  close(): void;
}

export interface SoundOptions {
  readonly ffmpeg: Ffmpeg;
  readonly kind: Kind;
  readonly signal?: AbortSignal | undefined;
}

/** Opens any recording. WAV is read here, every other format by ffmpeg. */
export async function openSound(source: RecordingSource, options: SoundOptions): Promise<Sound> {
  const reader = new ByteReader(source.read(), options.signal);
  try {
    const start = await reader.peek(SNIFF_BYTES);
    const header = isWav(start) ? await readWavHeader(reader) : null;
    if (header !== null) return soundOf(reader, header);
    reader.close();
    return await openWithFfmpeg(source, start, options);
  } catch (error) {
    reader.close();
    throw error;
  }
}

/** Converts a short recording to raw samples with ffmpeg, a second time if ffmpeg died over the first. */
export async function convertClip(
  file: Uint8Array,
  options: Omit<SoundOptions, 'kind'>,
): Promise<{ format: PcmFormat; data: Uint8Array }> {
  try {
    return await convertClipOnce(file, options);
  } catch (error) {
    if (!(error instanceof DecoderDiedError)) throw error;
    return convertClipOnce(file, options);
  }
}

async function convertClipOnce(
  file: Uint8Array,
  options: Omit<SoundOptions, 'kind'>,
): Promise<{ format: PcmFormat; data: Uint8Array }> {
  const { format, pieces } = await openWithFfmpeg(memorySource(file), file, { ...options, kind: 'clip' });
  return { format, data: await collectClip(pieces, format) };
}

/** `start` has the first bytes of the recording. */
async function openWithFfmpeg(
  source: RecordingSource,
  start: Uint8Array,
  { ffmpeg, kind, signal }: SoundOptions,
): Promise<Sound> {
  if (start.length === 0) throw unreadable('The recording is empty.');
  const container = sniff(start);
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
  checkSampleRate(header.format);
  return { format: header.format, pieces: readSound(reader, header), close: () => reader.close() };
}

/**
 * Signatures of common formats, since file names and content types are often wrong. Used for error messages and the
 * MP4 index only, so the list may be incomplete: ffmpeg detects formats itself.
 */
const signatures: ReadonlyArray<readonly [name: string, at: number, bytes: string]> = [
  ['flac', 0, 'fLaC'],
  ['ogg', 0, 'OggS'],
  ['mp3', 0, 'ID3'],
  ['mp4', 4, 'ftyp'],
  // First boxes of old QuickTime files.
  ['mp4', 4, 'moov'],
  ['mp4', 4, 'mdat'],
  ['mp4', 4, 'wide'],
  ['mp4', 4, 'free'],
  ['mp4', 4, 'skip'],
  ['mp4', 4, 'pnot'],
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

/** The format of a recording, from its first bytes. */
export function sniff(bytes: Uint8Array): string {
  if (isWav(bytes)) return 'wav';
  const start = String.fromCharCode(...bytes.subarray(0, SNIFF_BYTES));
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
