// RFC 1321. The ETags of parts are MD5s, and a browser's own crypto has no MD5. By hand, because it hashes whole recordings
// on the page's main thread: @noble/hashes takes more than twice the time and twice the bytes.
import type { Md5 } from './platform.ts';

const BLOCK = 64;

const SINES = Int32Array.from({ length: 64 }, (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32));

const SHIFTS = Int32Array.of(7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21);

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

  /** Four rounds of sixteen operations; a loop for each round takes a third of the time of one loop for all. */
  #mix(bytes: Uint8Array, offset: number): void {
    const words = this.#words;
    const state = this.#state;
    for (let i = 0, j = offset; i < 16; i++, j += 4) {
      words[i] = at(bytes, j) | (at(bytes, j + 1) << 8) | (at(bytes, j + 2) << 16) | (at(bytes, j + 3) << 24);
    }
    let a = at(state, 0);
    let b = at(state, 1);
    let c = at(state, 2);
    let d = at(state, 3);
    for (let i = 0; i < 16; i++) {
      const rotated = rotate(a + ((b & c) | (~b & d)) + at(SINES, i) + at(words, i), at(SHIFTS, i & 3));
      a = d;
      d = c;
      c = b;
      b = (b + rotated) | 0;
    }
    for (let i = 16; i < 32; i++) {
      const word = at(words, (5 * i + 1) & 15);
      const rotated = rotate(a + ((d & b) | (~d & c)) + at(SINES, i) + word, at(SHIFTS, 4 + (i & 3)));
      a = d;
      d = c;
      c = b;
      b = (b + rotated) | 0;
    }
    for (let i = 32; i < 48; i++) {
      const rotated = rotate(
        a + (b ^ c ^ d) + at(SINES, i) + at(words, (3 * i + 5) & 15),
        at(SHIFTS, 8 + (i & 3)),
      );
      a = d;
      d = c;
      c = b;
      b = (b + rotated) | 0;
    }
    for (let i = 48; i < 64; i++) {
      const rotated = rotate(
        a + (c ^ (b | ~d)) + at(SINES, i) + at(words, (7 * i) & 15),
        at(SHIFTS, 12 + (i & 3)),
      );
      a = d;
      d = c;
      c = b;
      b = (b + rotated) | 0;
    }
    state[0] = at(state, 0) + a;
    state[1] = at(state, 1) + b;
    state[2] = at(state, 2) + c;
    state[3] = at(state, 3) + d;
  }
}

function rotate(value: number, bits: number): number {
  return (value << bits) | ((value | 0) >>> (32 - bits));
}

/** An element that is known to exist. */
function at(list: Int32Array | Uint8Array, index: number): number {
  return list[index] as number;
}
