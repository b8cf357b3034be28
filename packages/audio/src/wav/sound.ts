import type { ByteReader } from '../byte-reader.ts';
import type { WavHeader } from './header.ts';

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
