import type { ByteReader } from '../byte-reader.ts';
import { takeTurn } from '../turnstile.ts';
import { sampleFormats } from './encodings.ts';
import type { WavHeader } from './header.ts';

const BLOCK_BYTES = 64 * 1024;

/** The sound of a WAV file whose header was just read: mono, at the file's own rate. */
export async function* readWavSamples(reader: ByteReader, header: WavHeader): AsyncGenerator<Float32Array> {
  const { frameBytes, channels } = header;
  const format = sampleFormats[header.encoding];
  // Samples may begin anywhere in a piece of the stream; here they always begin at 0.
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
      const samples = mixDown(format.decode(block.subarray(0, whole)), channels);
      block.copyWithin(0, whole, filled);
      filled -= whole;
      yield samples;
    }
    if (left === 0 && (await soundGoesOn(reader, header))) left = Infinity;
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

function mixDown(interleaved: Float32Array, channels: number): Float32Array {
  if (channels === 1) return interleaved;
  const mono = new Float32Array(interleaved.length / channels);
  const share = 1 / channels;
  for (let frame = 0, at = 0; frame < mono.length; frame++) {
    let sum = 0;
    for (let channel = 0; channel < channels; channel++) sum += interleaved[at++] as number;
    mono[frame] = sum * share;
  }
  return mono;
}
