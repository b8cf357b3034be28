import type { PcmBlock } from './decode.ts';
import { atLeastZero, framesFor, MODEL_SAMPLE_RATE, modelSamples, planStages } from './resample/plan.ts';
import type { PcmFormat } from './wav.ts';

/** How much is decoded at once: long enough to be worth a trip to a thread, short enough to leave it free soon. */
const LONGEST_SECONDS = 20;
const MOST_BYTES = 4 * 1024 * 1024;
const FEWEST_SAMPLES = 512;

/** Cuts a stream of samples into blocks that can each be decoded alone, with the same result as the whole. */
export async function* cutIntoBlocks(
  pieces: AsyncIterable<Uint8Array>,
  format: PcmFormat,
  mostBytes: number = MOST_BYTES,
): AsyncGenerator<PcmBlock> {
  const { sampleRate, frameBytes } = format;
  const stages = planStages(sampleRate);
  const length = samplesInBlock(format, mostBytes);
  const begin = (start: number) => {
    const frames = atLeastZero(framesFor(stages, { start, end: start + length }));
    const data = new Uint8Array((frames.end - frames.start) * frameBytes);
    return { start, firstFrame: frames.start, data, filled: 0 };
  };

  let block = begin(0);
  for await (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      const taken = piece.subarray(at, at + block.data.length - block.filled);
      block.data.set(taken, block.filled);
      block.filled += taken.length;
      at += taken.length;
      if (block.filled < block.data.length) continue;
      const { start, data, firstFrame } = block;
      // The frames around a border belong to both blocks.
      block = begin(start + length);
      const shared = data.subarray((block.firstFrame - firstFrame) * frameBytes);
      block.data.set(shared);
      block.filled = shared.length;
      yield { format, data, firstFrame, outputs: { start, end: start + length } };
    }
  }
  const { start, data, firstFrame, filled } = block;
  const end = modelSamples(firstFrame + Math.floor(filled / frameBytes), sampleRate);
  if (end > start) yield { format, data: data.subarray(0, filled), firstFrame, outputs: { start, end } };
}

function samplesInBlock({ sampleRate, frameBytes }: PcmFormat, mostBytes: number): number {
  const fitting = Math.floor((mostBytes / frameBytes) * (MODEL_SAMPLE_RATE / sampleRate));
  return Math.max(FEWEST_SAMPLES, Math.min(LONGEST_SECONDS * MODEL_SAMPLE_RATE, fitting));
}
