import { type Encoding, modelSamples, type PcmBlock, type PcmFormat, SAMPLE_BYTES } from '@undertone/audio';
import { STREAM_LIMITS, type StreamEncoding } from '@undertone/contract';

const { windowSeconds, firstSeconds, minTailSeconds } = STREAM_LIMITS;

const ENCODINGS = {
  pcm_s16le: 'pcm16',
  pcm_f32le: 'float32',
  mulaw: 'mulaw',
  alaw: 'alaw',
} as const satisfies Record<StreamEncoding, Encoding>;

export function streamFormat(encoding: StreamEncoding, sampleRate: number, channels: number): PcmFormat {
  const name = ENCODINGS[encoding];
  return { encoding: name, sampleRate, channels, frameBytes: SAMPLE_BYTES[name] * channels };
}

/** The latest sound of a stream, to be heard as if it were a recording of its own. */
export interface StreamWindow {
  readonly startSeconds: number;
  readonly endSeconds: number;
  /** What came since the last window. */
  readonly newSeconds: number;
  readonly block: PcmBlock;
}

/**
 * Bytes in, windows out; it does not matter how the bytes are cut into messages. A window is the last 5 s. The first is
 * there after 5 s (after 4 when they follow each other more often than that), the next ones after every interval.
 *
 * The bytes are kept as they come, in a ring buffer of 5 s: decoded they would take up to four times as much.
 */
export class StreamWindows {
  readonly #format: PcmFormat;
  readonly #bytesPerSecond: number;
  readonly #intervalSeconds: number;
  /** Made with the first byte: a connection that says nothing costs nothing. */
  #ring: Uint8Array | undefined;
  #received = 0;
  #lastEnd = 0;
  #nextEnd: number;

  constructor(format: PcmFormat, intervalSeconds: number) {
    this.#format = format;
    this.#bytesPerSecond = format.sampleRate * format.frameBytes;
    this.#intervalSeconds = intervalSeconds;
    this.#nextEnd = intervalSeconds < windowSeconds ? firstSeconds : windowSeconds;
  }

  /** In whole frames. */
  get seconds(): number {
    return this.#frames / this.#format.sampleRate;
  }

  get #frames(): number {
    return Math.floor(this.#received / this.#format.frameBytes);
  }

  /** Goes on through the bytes only as fast as the windows are taken. */
  *push(bytes: Uint8Array): Generator<StreamWindow> {
    for (let at = 0; at < bytes.length; ) {
      const missing = this.#nextEnd * this.#bytesPerSecond - this.#received;
      const piece = bytes.subarray(at, at + missing);
      this.#store(piece);
      at += piece.length;
      if (piece.length < missing) return;
      yield this.#window();
      this.#nextEnd += this.#intervalSeconds;
    }
  }

  /** What has not been answered when the stream ends; null where that is too little. */
  end(): StreamWindow | null {
    return this.seconds - this.#lastEnd >= minTailSeconds ? this.#window() : null;
  }

  #window(): StreamWindow {
    const { sampleRate, frameBytes } = this.#format;
    const endSeconds = this.seconds;
    const newSeconds = endSeconds - this.#lastEnd;
    this.#lastEnd = endSeconds;
    const frames = Math.min(this.#frames, windowSeconds * sampleRate);
    return {
      startSeconds: endSeconds - frames / sampleRate,
      endSeconds,
      newSeconds,
      block: {
        format: this.#format,
        data: this.#copy(this.#frames * frameBytes, frames * frameBytes),
        firstFrame: 0,
        outputs: { start: 0, end: modelSamples(frames, sampleRate) },
      },
    };
  }

  #store(bytes: Uint8Array): void {
    // One frame more, because the last one may not be whole.
    this.#ring ??= new Uint8Array(windowSeconds * this.#bytesPerSecond + this.#format.frameBytes);
    const { length } = this.#ring;
    const kept = bytes.subarray(Math.max(0, bytes.length - length));
    const at = (this.#received + bytes.length - kept.length) % length;
    const beforeWrap = Math.min(kept.length, length - at);
    this.#ring.set(kept.subarray(0, beforeWrap), at);
    this.#ring.set(kept.subarray(beforeWrap), 0);
    this.#received += bytes.length;
  }

  /** The `count` bytes before byte number `end` of the stream. */
  #copy(end: number, count: number): Uint8Array {
    const ring = this.#ring as Uint8Array;
    const copy = new Uint8Array(count);
    const at = (end - count) % ring.length;
    const beforeWrap = Math.min(count, ring.length - at);
    copy.set(ring.subarray(at, at + beforeWrap));
    copy.set(ring.subarray(0, count - beforeWrap), beforeWrap);
    return copy;
  }
}
