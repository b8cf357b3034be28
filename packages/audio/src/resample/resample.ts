import { AREA, areas, convolve } from './kernel.ts';
import {
  atLeastZero,
  framesFor,
  MODEL_SAMPLE_RATE,
  modelSamples,
  planStages,
  type Span,
  type Stage,
} from './plan.ts';

/**
 * Any part of a recording at 16 kHz. Each output sample depends on nothing but its own inputs, so a part is, to the
 * bit, the same as that part of the whole, however the recording is cut.
 *
 * `input` begins with sample `firstFrame` of the recording and has all samples that `framesFor` names, as far as they
 * exist; around the recording there is silence.
 */
export function resample(
  input: Float32Array,
  firstFrame: number,
  fromRate: number,
  outputs: Span,
): Float32Array<ArrayBuffer> {
  const stages = planStages(fromRate);
  const result = new Float32Array(outputs.end - outputs.start);
  const longest = longestBlock(stages, fromRate);
  for (let start = outputs.start; start < outputs.end; start += longest) {
    const end = Math.min(start + longest, outputs.end);
    result.set(resampleBlock(stages, input, firstFrame, { start, end }), start - outputs.start);
  }
  return result;
}

/** A recording as a whole. */
export function resampleAll(samples: Float32Array, fromRate: number): Float32Array<ArrayBuffer> {
  return resample(samples, 0, fromRate, { start: 0, end: modelSamples(samples.length, fromRate) });
}

/** How many outputs are made at once: what they need must fit into an area. */
function longestBlock(stages: readonly Stage[], fromRate: number): number {
  const { start, end } = framesFor(stages, { start: 2 ** 40, end: 2 ** 40 + 1 });
  const most = Math.floor((AREA - (end - start)) / Math.max(1, fromRate / MODEL_SAMPLE_RATE)) - 1;
  // The kernel is fastest where it runs through all phases four times side by side.
  const group = 4 * (stages.at(-1)?.phases ?? 1);
  return most > group ? most - (most % group) : most;
}

/** Leaves its result in an area, where the next call writes over it. */
function resampleBlock(
  stages: readonly Stage[],
  input: Float32Array,
  firstFrame: number,
  outputs: Span,
): Float32Array {
  let [from, to] = areas;
  let span = framesFor(stages, outputs);
  fill(from, span, input, firstFrame);
  for (const [i, stage] of stages.entries()) {
    const wanted = framesFor(stages.slice(i + 1), outputs);
    const made = atLeastZero(wanted);
    // Nothing was there before the first sample, not even the beginning of the filter's answer to it.
    to.fill(0, 0, made.start - wanted.start);
    convolve(stage, made.start, made.end - made.start, from, to.subarray(made.start - wanted.start));
    span = wanted;
    [from, to] = [to, from];
  }
  return from.subarray(0, span.end - span.start);
}

/** Copies what lies within the span, with silence where there is nothing. */
function fill(area: Float32Array, span: Span, input: Float32Array, firstFrame: number): void {
  const start = Math.max(span.start, firstFrame);
  const end = Math.max(start, Math.min(span.end, firstFrame + input.length));
  area.fill(0, 0, start - span.start);
  area.set(input.subarray(start - firstFrame, end - firstFrame), start - span.start);
  area.fill(0, end - span.start, span.end - span.start);
}
