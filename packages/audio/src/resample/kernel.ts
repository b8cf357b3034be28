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

/**
 * Nothing is kept between calls but the banks that were used lately, so one instance with a small
 * fixed memory serves every resampler: banks, then the input, then the output.
 */
const memory = new Float32Array(polyphase.memory.buffer);
export const INPUT_ROOM = 32_768;
export const OUTPUT_ROOM = 32_768;
const OUTPUT_AT = memory.length - OUTPUT_ROOM;
const INPUT_AT = OUTPUT_AT - INPUT_ROOM;

/** Where to write the samples before `convolve`. */
export const input = memory.subarray(INPUT_AT, OUTPUT_AT);
const output = memory.subarray(OUTPUT_AT);
const inputBytes = new Uint8Array(input.buffer, input.byteOffset, input.byteLength);

/** 16-bit samples, little-endian, as floats of -1..1. */
export function widen16(raw: Uint8Array, samples: Float32Array): void {
  for (let at = 0; at < samples.length; at += OUTPUT_ROOM) {
    const count = Math.min(OUTPUT_ROOM, samples.length - at);
    inputBytes.set(raw.subarray(at * 2, (at + count) * 2));
    polyphase.widen(INPUT_AT * 4, OUTPUT_AT * 4, count);
    samples.set(output.subarray(0, count), at);
  }
}

const places = new Map<FilterBank, number>();
let nextPlace = 0;

/** Where in memory a bank is; puts it there first where it is not, over all others when room is short. */
function placeOf(bank: FilterBank): number {
  const known = places.get(bank);
  if (known !== undefined) return known;
  if (nextPlace + bank.coefficients.length > INPUT_AT) {
    places.clear();
    nextPlace = 0;
  }
  const place = nextPlace;
  memory.subarray(0, INPUT_AT).set(bank.coefficients, place);
  places.set(bank, place);
  nextPlace += bank.coefficients.length;
  return place;
}

/** The next `count` outputs over what lies in `input`, the first of them at `phase`: there until the next call. */
export function convolve(bank: FilterBank, stride: number, phase: number, count: number): Float32Array {
  const { taps, rows, phases } = bank;
  polyphase.convolve(
    INPUT_AT * 4,
    placeOf(bank) * 4,
    taps * 4,
    rows,
    phases,
    phase,
    Math.floor(stride / phases),
    stride % phases,
    OUTPUT_AT * 4,
    count,
  );
  return output.subarray(0, count);
}
