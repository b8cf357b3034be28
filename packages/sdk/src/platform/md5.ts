// RFC 1321. Browsers' own crypto has no MD5, and the ETags of parts are MD5s.
import type { Md5 } from './platform.ts';

const BLOCK = 64;

const SHIFTS = [
  [7, 12, 17, 22],
  [5, 9, 14, 20],
  [4, 11, 16, 23],
  [6, 10, 15, 21],
].flatMap((round) => [...round, ...round, ...round, ...round]);

const SINES = Int32Array.from({ length: 64 }, (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32));

/** Which of a block's sixteen words each of the 64 operations takes. */
const WORDS = Array.from({ length: 64 }, (_, i) => {
  if (i < 16) return i;
  if (i < 32) return (5 * i + 1) % 16;
  return i < 48 ? (3 * i + 5) % 16 : (7 * i) % 16;
});

export class PortableMd5 implements Md5 {
  readonly #state = Int32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476);
  readonly #words = new Int32Array(16);
  readonly #pending = new Uint8Array(BLOCK);
  #length = 0;

  update(bytes: Uint8Array): void {
    let offset = 0;
    const held = this.#length % BLOCK;
    this.#length += bytes.length;
    if (held > 0) {
      offset = Math.min(BLOCK - held, bytes.length);
      this.#pending.set(bytes.subarray(0, offset), held);
      if (held + offset < BLOCK) return;
      this.#mix(this.#pending, 0);
    }
    for (; offset + BLOCK <= bytes.length; offset += BLOCK) this.#mix(bytes, offset);
    this.#pending.set(bytes.subarray(offset));
  }

  hex(): string {
    const length = this.#length;
    const held = length % BLOCK;
    const tail = new Uint8Array(held < BLOCK - 8 ? BLOCK - held : 2 * BLOCK - held);
    tail[0] = 0x80;
    const view = new DataView(tail.buffer);
    view.setUint32(tail.length - 8, (length * 8) >>> 0, true);
    view.setUint32(tail.length - 4, Math.floor(length / 2 ** 29), true);
    this.update(tail);
    const digest = new DataView(new ArrayBuffer(16));
    this.#state.forEach((word, i) => {
      digest.setInt32(4 * i, word, true);
    });
    return Array.from(new Uint8Array(digest.buffer), (byte) => byte.toString(16).padStart(2, '0')).join('');
  }

  #mix(bytes: Uint8Array, offset: number): void {
    const words = this.#words;
    for (let i = 0, at = offset; i < 16; i++, at += 4) {
      words[i] =
        at0(bytes, at) | (at0(bytes, at + 1) << 8) | (at0(bytes, at + 2) << 16) | (at0(bytes, at + 3) << 24);
    }
    const [a0, b0, c0, d0] = this.#state as unknown as [number, number, number, number];
    let [a, b, c, d] = [a0, b0, c0, d0];
    for (let i = 0; i < 64; i++) {
      let mixed: number;
      if (i < 16) mixed = (b & c) | (~b & d);
      else if (i < 32) mixed = (d & b) | (~d & c);
      else if (i < 48) mixed = b ^ c ^ d;
      else mixed = c ^ (b | ~d);
      const sum = (a + mixed + at0(SINES, i) + at0(words, at0(WORDS, i))) | 0;
      const shift = at0(SHIFTS, i);
      a = d;
      d = c;
      c = b;
      b = (b + ((sum << shift) | (sum >>> (32 - shift)))) | 0;
    }
    this.#state.set([(a0 + a) | 0, (b0 + b) | 0, (c0 + c) | 0, (d0 + d) | 0]);
  }
}

/** An element that is known to be there. */
function at0(list: ArrayLike<number>, index: number): number {
  return list[index] as number;
}
