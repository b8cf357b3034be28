import { readFileSync } from 'node:fs';
import { designFilter, type Stage } from './plan.ts';

/** As much of the WebAssembly interface as is used here; TypeScript has it only with the browser's. */
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

/** How many samples an area has room for. The loops of the kernel read and write up to `SPARE` more. */
export const AREA = 70_000;
const SPARE = 144;

/** Filters, then two areas through which samples pass from one stage to the next, then scratch space for `halve`. */
const memory = new Float32Array(polyphase.memory.buffer);
const FILTERS = memory.length - 3 * (AREA + SPARE);
const areaAt = (place: number) => memory.subarray(FILTERS + place * (AREA + SPARE)).subarray(0, AREA + SPARE);
export const areas = [areaAt(0), areaAt(1)] as const;
const scratch = areaAt(2);

/** 16-bit samples, little-endian, as floats of -1..1. Both lie in areas, and up to seven more are written over. */
export function widen16(raw: Uint8Array, samples: Float32Array): void {
  polyphase.widen(raw.byteOffset, samples.byteOffset, samples.length);
}

/** Where in memory the filters are that were used lately: there is room for ten of the largest. */
const places = new Map<string, number>();
let nextPlace = 0;

/** In bytes. A filter that is not there is designed first, over all others when room is short. */
function placeOf(stage: Stage): number {
  const known = places.get(stage.key);
  if (known !== undefined) return known;
  const coefficients = designFilter(stage);
  if (nextPlace + coefficients.length > FILTERS) {
    places.clear();
    nextPlace = 0;
  }
  memory.set(coefficients, nextPlace);
  const place = nextPlace * 4;
  places.set(stage.key, place);
  nextPlace += coefficients.length;
  return place;
}

/** Outputs `first` up to `first + count` of a stage, from inputs that begin with the first one needed. */
export function convolve(
  stage: Stage,
  first: number,
  count: number,
  from: Float32Array,
  to: Float32Array,
): void {
  const { taps, rows, phases, stride, cutoff } = stage;
  const filter = placeOf(stage);
  // Every second coefficient of a filter that cuts at half the band is zero.
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
