import { SAMPLE_RATE } from '@undertone/contract';
import type { ByteReader } from './byte-reader.ts';
import { AudioError } from './errors.ts';

/** Encodings that are decoded here, with the bytes per sample. */
export const SAMPLE_BYTES = {
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

/** Layout of interleaved samples. A frame is one sample of every channel. */
export interface PcmFormat {
  readonly encoding: Encoding;
  readonly sampleRate: number;
  readonly channels: number;
  readonly frameBytes: number;
}

export interface WavHeader {
  readonly format: PcmFormat;
  /** As stated by the header; null if the recorder left it open. */
  readonly dataBytes: number | null;
}

const TAG_PCM = 1;
const TAG_FLOAT = 3;
const TAG_ALAW = 6;
const TAG_MULAW = 7;
const TAG_EXTENSIBLE = 0xfffe;

const MAX_CHANNELS = 64;
const MAX_CHUNKS = 1_000;
const MAX_FORMAT_BYTES = 40;
const OPEN_SIZE = 0xffff_ffff;

/** Sniffs the first 12 bytes. */
export function isWav(bytes: Uint8Array): boolean {
  return /^(RIFF|RF64|BW64)[\s\S]{4}WAVE/.test(ascii(bytes, 0, 12));
}

/**
 * Splits a WAV file in memory into format and samples, without copying. Null if the samples are compressed (ADPCM, MP3
 * in WAV, ...).
 */
export function readWav(file: Uint8Array): { format: PcmFormat; data: Uint8Array } | null {
  const steps = walkHeader();
  let at = 0;
  let step = steps.next();
  while (!step.done) {
    const [skip, peek] = step.value;
    at += skip;
    step = steps.next(file.subarray(at, at + peek));
  }
  if (step.value === null) return null;
  const { format, dataBytes } = step.value;
  const end = at + (dataBytes ?? Infinity);
  const isOpen = hasUncountedSamples(file.subarray(end, end + TAIL_BYTES), step.value);
  return { format, data: file.subarray(at, isOpen ? file.length : end) };
}

/** Reads a stream up to its first sample. Null if the samples are compressed. */
export async function readWavHeader(reader: ByteReader): Promise<WavHeader | null> {
  const steps = walkHeader();
  let step = steps.next();
  while (!step.done) {
    const [skip, peek] = step.value;
    await reader.skip(skip);
    step = steps.next(await reader.peek(peek));
  }
  return step.value;
}

/** The samples of a stream whose header was just read, as bytes, piece by piece as they arrive. */
export async function* readSound(reader: ByteReader, header: WavHeader): AsyncGenerator<Uint8Array> {
  try {
    let left = header.dataBytes ?? Infinity;
    while (left > 0) {
      const bytes = await reader.readSome(left);
      if (bytes === null) return;
      left -= bytes.length;
      yield bytes;
      if (left === 0 && hasUncountedSamples(await reader.peek(TAIL_BYTES), header)) {
        left = Infinity;
      }
    }
  } finally {
    reader.close();
  }
}

export function checkSampleRate({ sampleRate }: PcmFormat): void {
  const { min, max } = SAMPLE_RATE;
  if (sampleRate < min) {
    throw new AudioError(
      'sample_rate_too_low',
      `The sample rate is ${sampleRate} Hz; at least ${min} Hz are needed. Record at a higher rate.`,
      { min_sample_rate: min, actual_sample_rate: sampleRate },
    );
  }
  if (sampleRate > max) {
    throw new AudioError(
      'sample_rate_too_high',
      `The sample rate is ${sampleRate} Hz; at most ${max} Hz are accepted. Resample the recording.`,
      { max_sample_rate: max, actual_sample_rate: sampleRate },
    );
  }
}

/** A request for bytes: move on by `skip`, then show the next `peek`, or fewer at the end of the file. */
type Step = readonly [skip: number, peek: number];

/**
 * Walks the chunks up to the first sample. Does no I/O itself, so that one parser serves files in memory and streams.
 */
function* walkHeader(): Generator<Step, WavHeader | null, Uint8Array> {
  const riff = yield [0, 12];
  if (riff.length < 12) throw unreadable('it ends within its header');
  let sizeFromDs64: number | null = null;
  let format: PcmFormat | null = null;
  let skip = riff.length;

  for (let chunks = 0; chunks < MAX_CHUNKS; chunks++) {
    const head = yield [skip, 8];
    if (head.length < 8) throw unreadable(format ? 'it has no data chunk' : 'it ends before its fmt chunk');
    const id = ascii(head, 0, 4);
    const size = uint32(head, 4);
    const body = yield [8, id === 'data' ? 0 : Math.min(size, MAX_FORMAT_BYTES)];

    if (id === 'data') {
      if (format === null) throw unreadable('its data chunk comes before its fmt chunk');
      return { format, dataBytes: dataSize(size, sizeFromDs64) };
    }
    if (id === 'ds64' && body.length >= 16) sizeFromDs64 = uint32(body, 8) + uint32(body, 12) * 2 ** 32;
    if (id === 'fmt ') {
      format = readFormat(body);
      if (format === null) return null;
    }
    skip = size;
    if (size % 2 === 1) {
      // A zero pads chunks of odd length, but some writers forget it.
      const [next] = yield [size, 1];
      skip = next === 0 ? 1 : 0;
    }
  }
  throw unreadable(`it has more than ${MAX_CHUNKS} chunks before its sound`);
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
  if (channels < 1 || channels > MAX_CHANNELS) {
    throw unreadable(`its header states ${channels} channels; 1 to ${MAX_CHANNELS} are possible`);
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
    throw unreadable(`its floating-point samples have ${bits} bits; only 32 and 64 are possible`);
  }
  if (tag !== TAG_PCM) return null;
  // Samples of 12 or 20 bits fill the top of a whole number of bytes, sometimes more than needed.
  const needed = Math.ceil(bits / 8);
  const bytes = Number.isInteger(container) && container > needed ? container : needed;
  const encoding = bits > 0 && ([null, 'pcm8', 'pcm16', 'pcm24', 'pcm32'] as const)[bytes];
  if (!encoding) throw unreadable(`its samples have ${bits} bits; only 8 to 32 are possible`);
  return encoding;
}

/** An interrupted recorder leaves 0 or the largest number. RF64 keeps the true size in its ds64 chunk. */
function dataSize(size: number, sizeFromDs64: number | null): number | null {
  const stated = size === OPEN_SIZE && sizeFromDs64 !== null ? sizeFromDs64 : size;
  return stated === 0 || stated === OPEN_SIZE ? null : stated;
}

/** Bytes after the stated end that `hasUncountedSamples` looks at. */
const TAIL_BYTES = 65_536;

/**
 * A crashed recorder may leave an outdated size in the header. Bytes after the stated end are samples, unless they are
 * another chunk, a tag, or padding up to the end of the file.
 */
function hasUncountedSamples(tail: Uint8Array, { format, dataBytes }: WavHeader): boolean {
  if (tail.length < format.frameBytes + 4) return false;
  const firstSet = tail.findIndex((byte) => byte !== 0);
  // Nobody pads that much: a recording that is silent for a moment.
  if (firstSet === -1) return tail.length === TAIL_BYTES;
  const padding = (dataBytes ?? 0) % 2;
  return ![0, padding, firstSet].some((at) => isTag(tail, at) || isChunk(tail, at));
}

function isTag(bytes: Uint8Array, at: number): boolean {
  return /^(ID3|TAG|APETAGEX|LYRICSBEGIN)/.test(ascii(bytes, at, at + 11));
}

const KNOWN_CHUNKS =
  'LIST,fact,cue ,smpl,inst,bext,iXML,id3 ,ID3 ,PEAK,plst,JUNK,junk,PAD ,FLLR,DISP,acid,cart,axml,chna,_PMX,levl,umid';

/** Four printable characters are also common samples. Of an unknown chunk, the size must lead to the next one or to the end. */
function isChunk(bytes: Uint8Array, at: number): boolean {
  if (at + 8 > bytes.length || !isName(bytes, at)) return false;
  if (KNOWN_CHUNKS.split(',').includes(ascii(bytes, at, at + 4))) return true;
  const end = at + 8 + uint32(bytes, at + 4);
  return [end, end + 1].some((next) => next === bytes.length || isName(bytes, next));
}

function isName(bytes: Uint8Array, at: number): boolean {
  return at + 4 <= bytes.length && bytes.subarray(at, at + 4).every((byte) => byte >= 0x20 && byte < 0x7f);
}

function unreadable(reason: string): AudioError {
  return new AudioError('unreadable_audio', `This WAV file cannot be read: ${reason}. Save it again as WAV.`);
}

function ascii(bytes: Uint8Array, start: number, end: number): string {
  return String.fromCharCode(...bytes.subarray(start, end));
}

function uint16(bytes: Uint8Array, at: number): number {
  return (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
}

function uint32(bytes: Uint8Array, at: number): number {
  return (uint16(bytes, at) | (uint16(bytes, at + 2) << 16)) >>> 0;
}
