import type { PcmBlock } from './decode.ts';
import {
  atLeastZero,
  framesFor,
  MODEL_SAMPLE_RATE,
  modelSamples,
  planStages,
  type Span,
} from './resample/plan.ts';
import type { PcmFormat } from './wav/header.ts';

/** How much is decoded at once: long enough to be worth a trip to a thread, short enough to leave it free soon. */
const LONGEST_SECONDS = 20;
const MOST_BYTES = 4 * 1024 * 1024;
const FEWEST_SAMPLES = 512;

/** Cuts a stream of samples into blocks that can each be decoded alone, with the same result as the whole. */
export async function* cutIntoBlocks(
  pieces: AsyncIterable<Uint8Array>,
  format: PcmFormat,
): AsyncGenerator<PcmBlock> {
  const stages = planStages(format.sampleRate);
  const length = samplesInBlock(format);
  const framesOf = (start: number): Span => atLeastZero(framesFor(stages, { start, end: start + length }));
  const filling = new BlockBytes(format.frameBytes, framesOf(0));
  let start = 0;

  for await (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      at += filling.push(piece.subarray(at));
      if (!filling.isFull) continue;
      const end = start + length;
      yield { format, data: filling.bytes, firstFrame: filling.frames.start, outputs: { start, end } };
      start = end;
      filling.moveTo(framesOf(start));
    }
  }
  const end = modelSamples(filling.wholeFrames, format.sampleRate);
  if (end <= start) return;
  yield { format, data: filling.written, firstFrame: filling.frames.start, outputs: { start, end } };
}

function samplesInBlock({ sampleRate, frameBytes }: PcmFormat): number {
  const fitting = Math.floor((MOST_BYTES / frameBytes) * (MODEL_SAMPLE_RATE / sampleRate));
  return Math.max(FEWEST_SAMPLES, Math.min(LONGEST_SECONDS * MODEL_SAMPLE_RATE, fitting));
}

/** The bytes of one block after another, each of which begins with the end of the one before. */
class BlockBytes {
  readonly #frameBytes: number;
  frames: Span;
  bytes: Uint8Array<ArrayBuffer>;
  #length = 0;

  constructor(frameBytes: number, frames: Span) {
    this.#frameBytes = frameBytes;
    this.frames = frames;
    this.bytes = this.#roomFor(frames);
  }

  get isFull(): boolean {
    return this.#length === this.bytes.length;
  }

  get written(): Uint8Array<ArrayBuffer> {
    return this.bytes.subarray(0, this.#length);
  }

  /** Of the recording, up to here. */
  get wholeFrames(): number {
    return this.frames.start + Math.floor(this.#length / this.#frameBytes);
  }

  /** Takes what there is room for, and says how many bytes that was. */
  push(piece: Uint8Array): number {
    const taken = piece.subarray(0, this.bytes.length - this.#length);
    this.bytes.set(taken, this.#length);
    this.#length += taken.length;
    return taken.length;
  }

  moveTo(frames: Span): void {
    const overlap = this.bytes.subarray((frames.start - this.frames.start) * this.#frameBytes);
    this.frames = frames;
    this.bytes = this.#roomFor(frames);
    this.bytes.set(overlap);
    this.#length = overlap.length;
  }

  #roomFor({ start, end }: Span): Uint8Array<ArrayBuffer> {
    return new Uint8Array((end - start) * this.#frameBytes);
  }
}
