import { Failure } from '../failure.ts';
import { type AudioSource, PIECE_BYTES } from './source.ts';

/** A recording that is in memory already. Its bytes are lent, not copied: leave them alone until the end. */
export function bytesSource(bytes: Uint8Array, name: string): AudioSource {
  return {
    name,
    size: bytes.length,
    async *read(start, end) {
      for (let at = start; at < end; at += PIECE_BYTES) {
        yield bytes.subarray(at, Math.min(at + PIECE_BYTES, end));
      }
    },
    verify: async () => {},
    close: async () => {},
  };
}

/** A Blob or File: the browser reads it from wherever it keeps it, piece by piece. */
export function blobSource(blob: Blob, name: string): AudioSource {
  return {
    name,
    size: blob.size,
    async *read(start, end) {
      for (let at = start; at < end; at += PIECE_BYTES) {
        const stop = Math.min(at + PIECE_BYTES, end);
        const piece = await readPiece(blob, at, stop);
        yield piece;
      }
    },
    verify: async () => {},
    close: async () => {},
  };
}

async function readPiece(blob: Blob, start: number, end: number): Promise<Uint8Array> {
  let cause: unknown;
  try {
    const piece = new Uint8Array(await blob.slice(start, end).arrayBuffer());
    if (piece.length === end - start) return piece;
  } catch (error) {
    cause = error;
  }
  throw new Failure('The file changed while it was being read. Start again when nothing writes to it.', {
    code: 'file_changed',
    cause,
  });
}
