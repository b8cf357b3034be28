import { readFileSync } from 'node:fs';
import {
  atLeastZero,
  designFilter,
  framesFor,
  MODEL_SAMPLE_RATE,
  modelSamples,
  planStages,
  type Span,
  type Stage,
} from './plan.ts';

/** The part of the WebAssembly API used here; TypeScript declares it only for browsers. */
interface WebAssemblyInterface {
  Module: new (binary: Uint8Array) => object;
  Instance: new (module: object) => { exports: unknown };
}

interface Polyphase {
  readonly memory: { readonly buffer: ArrayBuffer };
  widen(from: number, to: number, count: number): void;
  halve(input: number, bank: number, taps: number, scratch: number, output: number, count: number): void;
  convolve(
    input: number,
    bank: number,
    rowBytes: number,
    rows: number,
    phases: number,
    phase: number,
    step: number,
    carry: number,
    output: number,
    count: number,
  ): void;
}

const { Module, Instance } = (globalThis as unknown as { WebAssembly: WebAssemblyInterface }).WebAssembly;
const binary = readFileSync(new URL('./polyphase.wasm', import.meta.url));
const polyphase = new Instance(new Module(binary)).exports as Polyphase;

/** Capacity of an area in samples. The kernel's loops read and write up to `SPARE` more. */
const AREA = 70_000;
const SPARE = 144;

/** Memory layout: filters, two areas that alternate as input and output of the stages, scratch space for `halve`. */
const memory = new Float32Array(polyphase.memory.buffer);
const FILTERS = memory.length - 3 * (AREA + SPARE);
const areaAt = (index: number) => memory.subarray(FILTERS + index * (AREA + SPARE)).subarray(0, AREA + SPARE);
export const areas = [areaAt(0), areaAt(1)] as const;
const scratch = areaAt(2);

/** Little-endian 16-bit samples to floats of -1..1. Both must be in areas; up to seven floats more are overwritten. */
export function widen16(raw: Uint8Array, samples: Float32Array): void {
  polyphase.widen(raw.byteOffset, samples.byteOffset, samples.length);
}

/** Filter cache: offsets in memory by `Stage.key`. There is room for ten of the largest filters. */
const filterOffsets = new Map<string, number>();
let nextOffset = 0;

/** Offset of the filter in bytes. Designs it if missing; clears the cache if it is full. */
function filterOffset(stage: Stage): number {
  const known = filterOffsets.get(stage.key);
  if (known !== undefined) return known;
  const coefficients = designFilter(stage);
  if (nextOffset + coefficients.length > FILTERS) {
    filterOffsets.clear();
    nextOffset = 0;
  }
  memory.set(coefficients, nextOffset);
  const offset = nextOffset * 4;
  filterOffsets.set(stage.key, offset);
  nextOffset += coefficients.length;
  return offset;
}

/** Computes outputs `first` to `first + count` of a stage. `from` starts at the first input needed. */
function convolve(stage: Stage, first: number, count: number, from: Float32Array, to: Float32Array): void {
  const { taps, rows, phases, stride, cutoff } = stage;
  const filter = filterOffset(stage);
  // In a half-band filter every second coefficient is zero.
  if (phases === 1 && stride === 2 && Math.abs(cutoff - 0.25) < 1e-12) {
    polyphase.halve(from.byteOffset, filter, taps, scratch.byteOffset, to.byteOffset, count);
    return;
  }
  polyphase.convolve(
    from.byteOffset,
    filter,
    taps * 4,
    rows,
    phases,
    (first * stride) % phases,
    Math.floor(stride / phases),
    stride % phases,
    to.byteOffset,
    count,
  );
}

/**
 * Resamples any part of a recording to 16 kHz. Each output depends only on its own inputs, so a part is bit for bit the
 * same as in the resampled whole, wherever the recording is cut.
 *
 * `input` starts at sample `firstFrame` of the recording and has all samples that `framesFor` names, as far as they
 * exist. Before and after the recording there is silence.
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

/** Resamples a whole recording. */
export function resampleAll(samples: Float32Array, fromRate: number): Float32Array<ArrayBuffer> {
  return resample(samples, 0, fromRate, { start: 0, end: modelSamples(samples.length, fromRate) });
}

/** Number of outputs per batch: their inputs must fit into an area. */
function longestBlock(stages: readonly Stage[], fromRate: number): number {
  const { start, end } = framesFor(stages, { start: 2 ** 40, end: 2 ** 40 + 1 });
  const most = Math.floor((AREA - (end - start)) / Math.max(1, fromRate / MODEL_SAMPLE_RATE)) - 1;
  // The kernel is fastest if it goes through all phases four times in parallel.
  const group = 4 * (stages.at(-1)?.phases ?? 1);
  return most > group ? most - (most % group) : most;
}

/** The result is in an area: the next call overwrites it. */
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
    // Before the first sample there is silence, without the filter's ringing.
    to.fill(0, 0, made.start - wanted.start);
    convolve(stage, made.start, made.end - made.start, from, to.subarray(made.start - wanted.start));
    span = wanted;
    [from, to] = [to, from];
  }
  return from.subarray(0, span.end - span.start);
}

/** Copies the samples within the span and fills the rest with silence. */
function fill(area: Float32Array, span: Span, input: Float32Array, firstFrame: number): void {
  const start = Math.max(span.start, firstFrame);
  const end = Math.max(start, Math.min(span.end, firstFrame + input.length));
  area.fill(0, 0, start - span.start);
  area.set(input.subarray(start - firstFrame, end - firstFrame), start - span.start);
  area.fill(0, end - span.start, span.end - span.start);
}
