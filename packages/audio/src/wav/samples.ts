import type { ByteReader } from '../byte-reader.ts';
import { areas, HISTORY_ROOM } from '../resample/kernel.ts';
import { takeTurn } from '../turnstile.ts';
import { sampleFormats } from './encodings.ts';
import type { WavHeader } from './header.ts';

/** Samples of all channels together that are decoded at once. */
const BLOCK_SAMPLES = 32_768;

/** The sound of a WAV file whose header was just read, piece by piece as it arrives. */
export async function* readSound(reader: ByteReader, header: WavHeader): AsyncGenerator<Uint8Array> {
  const blockBytes = BLOCK_SAMPLES * sampleFormats[header.encoding].bytes;
  let left = header.dataBytes ?? Infinity;
  while (left > 0) {
    const bytes = await reader.readSome(Math.min(blockBytes, left));
    if (bytes === null) return;
    await takeTurn();
    left -= bytes.length;
    yield bytes;
    if (left === 0 && (await soundGoesOn(reader, header))) left = Infinity;
  }
}

/** What is decoded lies in the first area, where a resampler takes it from; its bytes lie in the second meanwhile. */
const samples = areas[0].subarray(HISTORY_ROOM);
const raw = new Uint8Array(areas[1].buffer, areas[1].byteOffset + HISTORY_ROOM * 4, samples.byteLength);

/** Pieces of the sound -> one channel at the file's own rate. */
export class MonoDecoder {
  readonly #header: WavHeader;
  /** The beginning of a frame whose end has not arrived. */
  readonly #cut: Uint8Array;
  #cutBytes = 0;

  constructor(header: WavHeader) {
    this.#header = header;
    this.#cut = new Uint8Array(header.frameBytes);
  }

  /** The result lies in memory that the next push of any decoder or resampler writes over. */
  push(bytes: Uint8Array): Float32Array {
    const { encoding, channels, frameBytes } = this.#header;
    const format = sampleFormats[encoding];
    raw.set(this.#cut.subarray(0, this.#cutBytes));
    raw.set(bytes, this.#cutBytes);
    const end = this.#cutBytes + bytes.length;
    this.#cutBytes = end % frameBytes;
    const whole = end - this.#cutBytes;
    this.#cut.set(raw.subarray(whole, end));
    const decoded = samples.subarray(0, whole / format.bytes);
    format.decode(raw.subarray(0, whole), decoded);
    return channels === 1 ? decoded : mixDown(decoded, channels);
  }
}

/**
 * A recorder that died may have left the size of an earlier moment in the header. Whatever follows
 * the stated end and is neither another chunk, nor a tag, nor padding is sound that was not counted.
 */
async function soundGoesOn(reader: ByteReader, header: WavHeader): Promise<boolean> {
  const next = await reader.peek(header.frameBytes + 4);
  if (next.length < header.frameBytes + 4) return false;
  const paddedBy = (header.dataBytes ?? 0) % 2;
  return !isName(next, 0) && !isName(next, paddedBy) && next.some((byte) => byte !== 0);
}

/** Chunk names are four letters, tags (`ID3`, `TAG`) have at least three. */
function isName(bytes: Uint8Array, at: number): boolean {
  return bytes.subarray(at, at + 3).every((byte) => byte >= 0x20 && byte < 0x7f);
}

/** In place: a frame's mean is written no later than its first sample is read. */
function mixDown(interleaved: Float32Array, channels: number): Float32Array {
  const frames = interleaved.length / channels;
  const share = 1 / channels;
  for (let frame = 0, at = 0; frame < frames; frame++) {
    let sum = 0;
    for (let channel = 0; channel < channels; channel++) sum += interleaved[at++] as number;
    interleaved[frame] = sum * share;
  }
  return interleaved.subarray(0, frames);
}
