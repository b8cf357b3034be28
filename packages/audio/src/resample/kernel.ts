import { readFileSync } from 'node:fs';
import type { FilterBank } from './filter-bank.ts';

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

/** How many samples an area holds: a block of the longest ones as raw bytes, or one at twice the rate. */
export const AREA_ROOM = 66_048;
/** How many samples fit before an area: what a filter still needs of those that came earlier. */
export const HISTORY_ROOM = 4_096;

/**
 * Nothing is kept between calls but the banks that were used lately, so one instance with a small fixed memory
 * serves every resampler: banks, then two areas, each after the room for its history, then scratch for `halve`. Samples
 * walk from one area to the other and back: what one step writes is where the next one reads, nothing is copied.
 */
const memory = new Float32Array(polyphase.memory.buffer);
const BANKS_ROOM = memory.length - 3 * (HISTORY_ROOM + AREA_ROOM);
const SCRATCH_AT = memory.length - (HISTORY_ROOM + AREA_ROOM);
const areaAt = (start: number) => memory.subarray(start, start + HISTORY_ROOM + AREA_ROOM);
/** Samples begin at `HISTORY_ROOM`. */
export const areas = [areaAt(BANKS_ROOM), areaAt(BANKS_ROOM + HISTORY_ROOM + AREA_ROOM)] as const;

/** 16-bit samples, little-endian, as floats of -1..1. Both lie in areas, and up to seven more are written over. */
export function widen16(raw: Uint8Array, samples: Float32Array): void {
  polyphase.widen(raw.byteOffset, samples.byteOffset, samples.length);
}

const places = new Map<FilterBank, number>();
let nextPlace = 0;

/** Where in memory a bank is; puts it there first where it is not, over all others when room is short. */
function placeOf(bank: FilterBank): number {
  const known = places.get(bank);
  if (known !== undefined) return known;
  if (nextPlace + bank.coefficients.length > BANKS_ROOM) {
    places.clear();
    nextPlace = 0;
  }
  const place = nextPlace;
  memory.subarray(0, BANKS_ROOM).set(bank.coefficients, place);
  places.set(bank, place);
  nextPlace += bank.coefficients.length;
  return place;
}

/** Writes the next `count` outputs over what lies at `from`, the first of them at `phase`. */
export function convolve(
  bank: FilterBank,
  stride: number,
  phase: number,
  from: Float32Array,
  to: Float32Array,
  count: number,
): void {
  const { taps, rows, phases, halfBand } = bank;
  if (halfBand && stride === 2) {
    polyphase.halve(from.byteOffset, placeOf(bank) * 4, taps, SCRATCH_AT * 4, to.byteOffset, count);
    return;
  }
  polyphase.convolve(
    from.byteOffset,
    placeOf(bank) * 4,
    taps * 4,
    rows,
    phases,
    phase,
    Math.floor(stride / phases),
    stride % phases,
    to.byteOffset,
    count,
  );
}
