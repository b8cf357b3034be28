import { type Allocate, freshPiece, PIECE_BYTES } from './source.ts';

/** Enough for three parts of the usual size; beyond it memory is left to the garbage collector. */
const KEPT_PIECES = (16 * 1024 * 1024) / PIECE_BYTES;

/** The memory of one part's pieces. */
export interface Lease {
  readonly allocate: Allocate;
  /** Only for a part that has arrived: then nobody can still be reading from its pieces. */
  giveBack(): void;
}

/**
 * Uses the memory of parts that have arrived for parts to come. The garbage collector would let tens of
 * megabytes of used pieces pile up before it clears them away.
 */
export class PiecePool {
  readonly #free: Uint8Array[] = [];

  lease(): Lease {
    const taken: Uint8Array[] = [];
    return {
      allocate: () => {
        const piece = this.#free.pop() ?? freshPiece();
        taken.push(piece);
        return piece;
      },
      giveBack: () => {
        this.#free.push(...taken.splice(0, KEPT_PIECES - this.#free.length));
        taken.length = 0;
      },
    };
  }
}
