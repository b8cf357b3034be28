import type { ByteReader } from '../byte-reader.ts';
import { takeTurn } from '../turnstile.ts';
import { sampleFormats } from './encodings.ts';
import { MOST_CHANNELS, type WavHeader } from './header.ts';

const BLOCK_BYTES = 64 * 1024;
const LONGEST_SAMPLE_BYTES = 8;

/** The sound of a WAV file whose header was just read, in whole frames that lie at the start of their buffer. */
export async function* readFrames(reader: ByteReader, header: WavHeader): AsyncGenerator<Uint8Array> {
  const { frameBytes } = header;
  const block = new Uint8Array(BLOCK_BYTES + frameBytes);
  let filled = 0;
  let left = header.dataBytes ?? Infinity;

  while (left > 0) {
    const bytes = await reader.readSome(Math.min(BLOCK_BYTES, left));
    if (bytes === null) return;
    await takeTurn();
    block.set(bytes, filled);
    filled += bytes.length;
    left -= bytes.length;

    const whole = filled - (filled % frameBytes);
    if (whole > 0) {
      yield block.subarray(0, whole);
      block.copyWithin(0, whole, filled);
      filled -= whole;
    }
    if (left === 0 && (await soundGoesOn(reader, header))) left = Infinity;
  }
}

/** The longest block, should every byte of it be a sample. */
const decoded = new Float32Array(BLOCK_BYTES + MOST_CHANNELS * LONGEST_SAMPLE_BYTES);

/** Frames as one channel at the file's own rate. They lie in memory that the next call writes over. */
export function toMono(frames: Uint8Array, { encoding, channels }: WavHeader): Float32Array {
  const format = sampleFormats[encoding];
  const samples = decoded.subarray(0, frames.length / format.bytes);
  format.decode(frames, samples);
  return channels === 1 ? samples : mixDown(samples, channels);
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
