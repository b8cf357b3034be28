import { AREA_ROOM, convolve, HISTORY_ROOM } from './kernel.ts';
import type { StagePlan } from './plan.ts';

/** One stage of a resampler: remembers the samples that later outputs still need. */
export class Stage {
  /** The most samples of one push whose result fits into an area. */
  readonly longestBlock: number;
  readonly #plan: StagePlan;
  /** Outputs are made in groups of so many: as the kernel makes them fastest, four laps of the filter bank at once. */
  readonly #group: number;
  /** Input that is not used up yet; at first the silence before the recording. */
  readonly #rest: Float32Array;
  #restLength: number;
  #phase = 0;

  constructor(plan: StagePlan) {
    const { taps, phases, rows } = plan.bank;
    if (taps > HISTORY_ROOM) throw new RangeError('These sample rates are too far apart.');
    this.#plan = plan;
    const longestRest = taps + 4 * plan.stride;
    this.#group = rows === phases && longestRest <= HISTORY_ROOM ? 4 * phases : 1;
    this.#rest = new Float32Array(this.#group === 1 ? taps : longestRest);
    this.#restLength = taps / 2 - 1;
    this.longestBlock = Math.min(AREA_ROOM, Math.floor(((AREA_ROOM - this.#group) * plan.stride) / phases));
  }

  /**
   * Takes `length` samples out of one area and leaves the result in the other; returns how many those are. What makes
   * no whole group waits for the next push, unless this is the last.
   */
  push(from: Float32Array, length: number, to: Float32Array, isLast: boolean): number {
    const { bank, stride } = this.#plan;
    const { taps, phases } = bank;
    const start = HISTORY_ROOM - this.#restLength;
    const end = HISTORY_ROOM + length;
    from.set(this.#rest.subarray(0, this.#restLength), start);

    const positions = end - start - taps + 1;
    const possible = Math.max(0, Math.ceil((positions * phases - this.#phase) / stride));
    const count = isLast ? possible : possible - (possible % this.#group);
    convolve(bank, stride, this.#phase, from.subarray(start), to.subarray(HISTORY_ROOM), count);
    const moved = this.#phase + count * stride;
    this.#phase = moved % phases;
    const unused = from.subarray(start + Math.floor(moved / phases), end);
    this.#rest.set(unused);
    this.#restLength = unused.length;
    return count;
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
