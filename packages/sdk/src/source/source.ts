/** Memory for one piece. */
export type Allocate = () => Uint8Array;

/** A recording of known length whose bytes can be read in any order and more than once. */
export interface AudioSource {
  /** What the service is told the file is called: never more than the last part of a path. */
  readonly name: string;
  readonly size: number;
  /**
   * The bytes from `start` up to `end`, in pieces; sources that need memory for a piece ask `allocate` for it.
   * Throws when the recording is no longer what it was.
   */
  read(start: number, end: number, allocate?: Allocate): AsyncIterable<Uint8Array>;
  /** Throws when the recording has changed since it was opened. */
  verify(): Promise<void>;
  close(): Promise<void>;
}

/** Recordings are read in pieces of this size: large enough to be quick, small enough to be nothing. */
export const PIECE_BYTES = 256 * 1024;

export function freshPiece(): Uint8Array {
  return new Uint8Array(PIECE_BYTES);
}
