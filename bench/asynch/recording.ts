import { WAV_HEADER_BYTES, wavHeader } from '@undertone/testing/wav';
import { voiceLike } from '../support/voice.ts';

const LOOP_SECONDS = 17;

/** A 16-bit WAV of any size: 17 s of sound, repeated. It is never in memory as a whole. */
export class Recording {
  readonly bytes: number;
  readonly seconds: number;
  readonly #header: Buffer;
  readonly #loop: Buffer;

  /** The same sound on the first `speaking` channels, silence on the others. */
  constructor(mebibytes: number, rate: number, channels: number, speaking = channels) {
    this.bytes = Math.round(mebibytes * 2 ** 20);
    const sound = Int16Array.from(voiceLike(LOOP_SECONDS, rate), (value) => Math.round(value * 32_767));
    const frames = Int16Array.from({ length: sound.length * channels }, (_, i) =>
      i % channels < speaking ? (sound[Math.floor(i / channels)] ?? 0) : 0,
    );
    this.#loop = Buffer.from(frames.buffer);
    const dataBytes = this.bytes - WAV_HEADER_BYTES;
    this.#header = wavHeader({ rate, channels, bits: 16, dataBytes });
    this.seconds = dataBytes / (2 * channels * rate);
  }

  slice(start: number, end: number): Buffer {
    const piece = Buffer.alloc(Math.min(end, this.bytes) - start);
    let at = start < WAV_HEADER_BYTES ? this.#header.copy(piece, 0, start) : 0;
    while (at < piece.length) {
      const from = (start + at - WAV_HEADER_BYTES) % this.#loop.length;
      at += this.#loop.copy(piece, at, from);
    }
    return piece;
  }
}
