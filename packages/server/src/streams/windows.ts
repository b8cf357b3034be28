import {
  type Encoding,
  modelSamples,
  type PcmBlock,
  type PcmFormat,
  RingBuffer,
  SAMPLE_BYTES,
} from '@undertone/audio';
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

/** The latest audio of a stream, to be classified like a short recording. */
export interface StreamWindow {
  readonly startSeconds: number;
  readonly endSeconds: number;
  /** Audio received since the last window. */
  readonly newSeconds: number;
  readonly block: PcmBlock;
}

/**
 * Cuts a stream of bytes into windows, however the bytes are split into messages. A window is the last 5 s. The first
 * one is complete after 5 s (after 4 s when the interval is shorter than a window), the others after each interval.
 *
 * The ring buffer holds the encoded bytes: decoded they would take up to four times the memory.
 */
export class StreamWindows {
  readonly #format: PcmFormat;
  readonly #bytesPerSecond: number;
  readonly #intervalSeconds: number;
  /** Allocated with the first byte: an idle connection takes no memory. */
  #bytes: RingBuffer<Uint8Array<ArrayBuffer>> | undefined;
  #lastEnd = 0;
  #nextEnd: number;

  constructor(format: PcmFormat, intervalSeconds: number) {
    this.#format = format;
    this.#bytesPerSecond = format.sampleRate * format.frameBytes;
    this.#intervalSeconds = intervalSeconds;
    this.#nextEnd = intervalSeconds < windowSeconds ? firstSeconds : windowSeconds;
  }

  /** Duration received, in whole frames. */
  get seconds(): number {
    return this.#frames / this.#format.sampleRate;
  }

  get #frames(): number {
    return Math.floor((this.#bytes?.end ?? 0) / this.#format.frameBytes);
  }

  /** Lazy: reads on only when the next window is requested. */
  *push(bytes: Uint8Array): Generator<StreamWindow> {
    for (let at = 0; at < bytes.length; ) {
      // One frame more than a window, because the last one may be incomplete.
      this.#bytes ??= new RingBuffer(
        new Uint8Array(windowSeconds * this.#bytesPerSecond + this.#format.frameBytes),
      );
      const missing = this.#nextEnd * this.#bytesPerSecond - this.#bytes.end;
      const piece = bytes.subarray(at, at + missing);
      this.#bytes.push(piece);
      at += piece.length;
      if (piece.length < missing) return;
      yield this.#window(this.#bytes);
      this.#nextEnd += this.#intervalSeconds;
    }
  }

  /** The unanswered tail when the stream ends; null when it is too short. */
  end(): StreamWindow | null {
    if (this.#bytes === undefined || this.seconds - this.#lastEnd < minTailSeconds) return null;
    return this.#window(this.#bytes);
  }

  #window(bytes: RingBuffer<Uint8Array<ArrayBuffer>>): StreamWindow {
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
        data: bytes.copy(frames * frameBytes, this.#frames * frameBytes),
        firstFrame: 0,
        outputs: { start: 0, end: modelSamples(frames, sampleRate) },
      },
    };
  }
}
