import { convolve, INPUT_ROOM, input, OUTPUT_ROOM } from './kernel.ts';
import type { StagePlan } from './plan.ts';

/** One stage of a resampler: remembers the samples that later outputs still need. */
export class Stage {
  readonly #plan: StagePlan;
  readonly #longestBlock: number;
  /** Input that is not used up yet; at first the silence before the recording. */
  #rest: Float32Array;
  #phase = 0;

  constructor(plan: StagePlan) {
    const { taps, phases } = plan.bank;
    this.#plan = plan;
    this.#rest = new Float32Array(taps / 2 - 1);
    const inputForFullOutput = Math.floor(((OUTPUT_ROOM - 1) * plan.stride) / phases);
    this.#longestBlock = Math.min(INPUT_ROOM - 2 * taps, inputForFullOutput);
  }

  /** The result lies in memory that the next push of any stage writes over. */
  push(samples: Float32Array): Float32Array {
    if (samples.length <= this.#longestBlock) return this.#pushBlock(samples);
    const whole = samples.slice();
    const parts: Float32Array[] = [];
    for (let at = 0; at < whole.length; at += this.#longestBlock) {
      parts.push(this.#pushBlock(whole.subarray(at, at + this.#longestBlock)).slice());
    }
    return concatenate(parts);
  }

  #pushBlock(block: Float32Array): Float32Array {
    const { bank, stride } = this.#plan;
    const { taps, phases } = bank;
    const available = this.#rest.length + block.length;
    input.set(this.#rest);
    input.set(block, this.#rest.length);

    const positions = available - taps + 1;
    const count = Math.max(0, Math.ceil((positions * phases - this.#phase) / stride));
    const samples = convolve(bank, stride, this.#phase, count);
    const moved = this.#phase + count * stride;
    this.#phase = moved % phases;
    this.#rest = input.slice(Math.floor(moved / phases), available);
    return samples;
  }
}

export function concatenate(parts: readonly Float32Array[]): Float32Array {
  const whole = new Float32Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
