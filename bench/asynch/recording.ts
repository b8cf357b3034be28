import { voiceLikeWav } from '../discrete/clip.ts';

const RATE = 44_100;
const HEADER_BYTES = 44;
const LOOP_SECONDS = 37;

/** A WAV of any size that is never in memory as a whole: half a minute of sound, over and over. */
export class Recording {
  readonly bytes: number;
  readonly #header: Buffer;
  readonly #loop: Buffer;

  constructor(megabytes: number) {
    const wav = voiceLikeWav(LOOP_SECONDS, RATE);
    this.#loop = wav.subarray(HEADER_BYTES);
    this.bytes = megabytes * 2 ** 20;
    this.#header = Buffer.from(wav.subarray(0, HEADER_BYTES));
    this.#header.writeUInt32LE(this.bytes - 8, 4);
    this.#header.writeUInt32LE(this.bytes - HEADER_BYTES, 40);
  }

  get seconds(): number {
    return (this.bytes - HEADER_BYTES) / 2 / RATE;
  }

  slice(start: number, end: number): Buffer {
    const piece = Buffer.alloc(Math.min(end, this.bytes) - start);
    let at = 0;
    if (start < HEADER_BYTES) at = this.#header.copy(piece, 0, start);
    while (at < piece.length) {
      const from = (start + at - HEADER_BYTES) % this.#loop.length;
      at += this.#loop.copy(piece, at, from);
    }
    return piece;
  }
}
