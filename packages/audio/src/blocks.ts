import type { PcmBlock } from './decode.ts';
import { atLeastZero, framesFor, MODEL_SAMPLE_RATE, modelSamples, planStages } from './resample/plan.ts';
import type { PcmFormat } from './wav.ts';

/** Block size: long enough to be worth a trip to a thread, short enough not to occupy it for long. */
const MAX_SECONDS = 20;
const MAX_BYTES = 4 * 1024 * 1024;
const MIN_SAMPLES = 512;

/** Cuts a stream of samples into blocks that decode independently, bit for bit as if decoded in one piece. */
export async function* cutIntoBlocks(
  pieces: AsyncIterable<Uint8Array>,
  format: PcmFormat,
  maxBytes: number = MAX_BYTES,
): AsyncGenerator<PcmBlock> {
  const { sampleRate, frameBytes } = format;
  const stages = planStages(sampleRate);
  const length = samplesInBlock(format, maxBytes);
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
      // Neighbouring blocks share the frames around their border.
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

function samplesInBlock({ sampleRate, frameBytes }: PcmFormat, maxBytes: number): number {
  const fitting = Math.floor((maxBytes / frameBytes) * (MODEL_SAMPLE_RATE / sampleRate));
  return Math.max(MIN_SAMPLES, Math.min(MAX_SECONDS * MODEL_SAMPLE_RATE, fitting));
}
