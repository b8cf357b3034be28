/** The last samples of a stream, up to a fixed number of them. */
export class RingBuffer {
  readonly #ring: Float32Array<ArrayBuffer>;
  /** How many samples there were so far. */
  end = 0;

  constructor(length: number) {
    this.#ring = new Float32Array(length);
  }

  push(samples: Float32Array): void {
    const { length } = this.#ring;
    const kept = samples.subarray(Math.max(0, samples.length - length));
    const at = (this.end + samples.length - kept.length) % length;
    const beforeWrap = Math.min(kept.length, length - at);
    this.#ring.set(kept.subarray(0, beforeWrap), at);
    this.#ring.set(kept.subarray(beforeWrap), 0);
    this.end += samples.length;
  }

  /** Oldest first; fewer than the ring holds where there were not so many yet. */
  copy(): Float32Array<ArrayBuffer> {
    const { length } = this.#ring;
    if (this.end <= length) return this.#ring.slice(0, this.end);
    const oldest = this.end % length;
    const samples = new Float32Array(length);
    samples.set(this.#ring.subarray(oldest), 0);
    samples.set(this.#ring.subarray(0, oldest), length - oldest);
    return samples;
  }
}
