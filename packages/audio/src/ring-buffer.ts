/** The latest values of a stream, up to a fixed number of them. */
export class RingBuffer<T extends Float32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>> {
  readonly #ring: T;
  /** Values pushed so far. */
  end = 0;

  /** The capacity is the length of `ring`, which must not be used elsewhere. */
  constructor(ring: T) {
    this.#ring = ring;
  }

  push(values: Float32Array | Uint8Array): void {
    const { length } = this.#ring;
    const kept = values.subarray(Math.max(0, values.length - length));
    const at = (this.end + values.length - kept.length) % length;
    const beforeWrap = Math.min(kept.length, length - at);
    this.#ring.set(kept.subarray(0, beforeWrap), at);
    this.#ring.set(kept.subarray(beforeWrap), 0);
    this.end += values.length;
  }

  /** A copy of the last `count` values before position `end` of the stream, oldest first. */
  copy(count = Math.min(this.end, this.#ring.length), end = this.end): T {
    const { length } = this.#ring;
    const at = (end - count) % length;
    const beforeWrap = Math.min(count, length - at);
    const copy = this.#ring.slice(0, count) as T;
    copy.set(this.#ring.subarray(at, at + beforeWrap));
    copy.set(this.#ring.subarray(0, count - beforeWrap), beforeWrap);
    return copy;
  }
}
