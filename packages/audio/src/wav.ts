import type { ByteReader } from './byte-reader.ts';
import { AudioError } from './errors.ts';

const SAMPLE_BYTES = {
  pcm8: 1,
  pcm16: 2,
  pcm24: 3,
  pcm32: 4,
  float32: 4,
  float64: 8,
  alaw: 1,
  mulaw: 1,
} as const;

export type Encoding = keyof typeof SAMPLE_BYTES;

/** How samples are written down, one frame (a sample of every channel) after another. */
export interface PcmFormat {
  readonly encoding: Encoding;
  readonly sampleRate: number;
  readonly channels: number;
  readonly frameBytes: number;
}

export interface WavHeader {
  readonly format: PcmFormat;
  /** As the header has it; null where the recorder left it open. */
  readonly dataBytes: number | null;
}

const TAG_PCM = 1;
const TAG_FLOAT = 3;
const TAG_ALAW = 6;
const TAG_MULAW = 7;
const TAG_EXTENSIBLE = 0xfffe;

const MOST_CHANNELS = 64;
const MOST_CHUNKS = 1_000;
const OPEN_SIZE = 0xffff_ffff;

/**
 * Walks the chunks up to the first sample. Null where the samples are compressed in a way that we do not decode
 * ourselves (ADPCM, MP3 in WAV, ...).
 */
export async function readWavHeader(reader: ByteReader): Promise<WavHeader | null> {
  const riff = await reader.read(12);
  if (riff.length < 12) throw unreadable('it ends within its header');
  let sizeFromDs64: number | null = null;
  let format: PcmFormat | null = null;

  for (let chunks = 0; chunks < MOST_CHUNKS; chunks++) {
    const head = await reader.read(8);
    if (head.length < 8) throw unreadable(format ? 'it has no data chunk' : 'it ends before its fmt chunk');
    const id = String.fromCharCode(...head.subarray(0, 4));
    const size = uint32(head, 4);

    if (id === 'data') {
      if (format === null) throw unreadable('its data chunk comes before its fmt chunk');
      return { format, dataBytes: dataSize(size, sizeFromDs64) };
    }
    let used = 0;
    if (id === 'ds64') {
      const body = await reader.read(Math.min(size, 16));
      used = body.length;
      if (used === 16) sizeFromDs64 = uint32(body, 8) + uint32(body, 12) * 2 ** 32;
    } else if (id === 'fmt ') {
      const body = await reader.read(Math.min(size, 40));
      used = body.length;
      format = readFormat(body);
      if (format === null) return null;
    }
    await reader.skip(size - used);
    if (size % 2 === 1) await skipPadding(reader);
  }
  throw unreadable(`it has more than ${MOST_CHUNKS} chunks before its sound`);
}

function readFormat(body: Uint8Array): PcmFormat | null {
  if (body.length < 16) throw unreadable('its fmt chunk is cut short');
  let tag = uint16(body, 0);
  const channels = uint16(body, 2);
  const sampleRate = uint32(body, 4);
  const frameBytes = uint16(body, 12);
  const bits = uint16(body, 14);
  if (tag === TAG_EXTENSIBLE) {
    if (body.length < 26) throw unreadable('its extensible fmt chunk is cut short');
    tag = uint16(body, 24);
  }
  if (channels < 1 || channels > MOST_CHANNELS) {
    throw unreadable(`its header names ${channels} channels, and 1 to ${MOST_CHANNELS} are possible`);
  }
  const encoding = encodingOf(tag, bits, frameBytes / channels);
  if (encoding === null) return null;
  return { encoding, sampleRate, channels, frameBytes: SAMPLE_BYTES[encoding] * channels };
}

function encodingOf(tag: number, bits: number, container: number): Encoding | null {
  if (tag === TAG_ALAW) return 'alaw';
  if (tag === TAG_MULAW) return 'mulaw';
  if (tag === TAG_FLOAT) {
    if (bits === 32) return 'float32';
    if (bits === 64) return 'float64';
    throw unreadable(`its floating-point samples have ${bits} bits, and only 32 and 64 are possible`);
  }
  if (tag !== TAG_PCM) return null;
  // Samples of 12 or 20 bits stand at the top of a whole number of bytes, at times more than needed.
  const needed = Math.ceil(bits / 8);
  const bytes = Number.isInteger(container) && container > needed ? container : needed;
  const encoding = bits > 0 && ([null, 'pcm8', 'pcm16', 'pcm24', 'pcm32'] as const)[bytes];
  if (!encoding) throw unreadable(`its samples have ${bits} bits, and only 8 to 32 are possible`);
  return encoding;
}

/** Recorders that were cut off leave 0 or the largest number; RF64 keeps the true size elsewhere. */
function dataSize(size: number, sizeFromDs64: number | null): number | null {
  const stated = size === OPEN_SIZE && sizeFromDs64 !== null ? sizeFromDs64 : size;
  return stated === 0 || stated === OPEN_SIZE ? null : stated;
}

/** Chunks of odd length are followed by a zero, except by writers that forget it. */
async function skipPadding(reader: ByteReader): Promise<void> {
  const [next] = await reader.peek(1);
  if (next === 0) await reader.skip(1);
}

/** The samples of a WAV file whose header was just read, as bytes, piece by piece as they arrive. */
export async function* readSound(reader: ByteReader, header: WavHeader): AsyncGenerator<Uint8Array> {
  try {
    let left = header.dataBytes ?? Infinity;
    while (left > 0) {
      const bytes = await reader.readSome(left);
      if (bytes === null) return;
      left -= bytes.length;
      yield bytes;
      if (left === 0 && (await soundGoesOn(reader, header))) left = Infinity;
    }
  } finally {
    reader.close();
  }
}

/**
 * A recorder that crashed may have left the size of an earlier moment in the header. Whatever follows the stated end
 * and is neither another chunk, nor a tag, nor padding is sound that was not counted.
 */
async function soundGoesOn(reader: ByteReader, { format, dataBytes }: WavHeader): Promise<boolean> {
  const next = await reader.peek(format.frameBytes + 4);
  if (next.length < format.frameBytes + 4) return false;
  const paddedBy = (dataBytes ?? 0) % 2;
  return !isName(next, 0) && !isName(next, paddedBy) && next.some((byte) => byte !== 0);
}

/** Chunk names are four letters, tags (`ID3`, `TAG`) have at least three. */
function isName(bytes: Uint8Array, at: number): boolean {
  return bytes.subarray(at, at + 3).every((byte) => byte >= 0x20 && byte < 0x7f);
}

function unreadable(reason: string): AudioError {
  return new AudioError('unreadable_audio', `This WAV file cannot be read: ${reason}. Save it again as WAV.`);
}

function uint16(bytes: Uint8Array, at: number): number {
  return (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
}

function uint32(bytes: Uint8Array, at: number): number {
  return (uint16(bytes, at) | (uint16(bytes, at + 2) << 16)) >>> 0;
}
