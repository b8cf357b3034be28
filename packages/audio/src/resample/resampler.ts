import { AREA_ROOM, areas, HISTORY_ROOM } from './kernel.ts';
import { planStages } from './plan.ts';
import { concatenate, Stage } from './stage.ts';

const SILENCE = new Float32Array(1024);

/**
 * Changes the sample rate of a stream. The output is the same however the input is cut into chunks,
 * lines up with it in time, and is `round(inputs * toRate / fromRate)` samples long. It may come up to a tenth of a
 * second of sound later than its input.
 */
export class Resampler {
  readonly #stages: readonly Stage[];
  readonly #ratio: number;
  /** The most samples that walk through all stages at once: none of them makes a block much longer. */
  readonly #longestBlock: number;
  #received = 0;
  #sent = 0;

  constructor(fromRate: number, toRate: number) {
    this.#stages = planStages(fromRate, toRate).map((plan) => new Stage(plan));
    this.#longestBlock = Math.min(AREA_ROOM, ...this.#stages.map((stage) => stage.longestBlock));
    this.#ratio = toRate / fromRate;
  }

  /** A chunk that lies in the first area already is taken from there. */
  push(chunk: Float32Array): Float32Array {
    this.#received += chunk.length;
    const output = this.#run(chunk);
    this.#sent += output.length;
    return output;
  }

  /** What the silence after the recording pushes out. Nothing may be pushed afterwards. */
  flush(): Float32Array {
    const missing = Math.round(this.#received * this.#ratio) - this.#sent;
    const parts: Float32Array[] = [];
    let length = 0;
    while (length < missing) {
      const part = this.#runBlock(SILENCE, true);
      parts.push(part);
      length += part.length;
    }
    this.#sent += missing;
    return concatenate(parts).slice(0, missing);
  }

  #run(chunk: Float32Array): Float32Array {
    if (chunk.length <= this.#longestBlock) return this.#runBlock(chunk, false);
    const whole = chunk.slice();
    const parts: Float32Array[] = [];
    for (let at = 0; at < whole.length; at += this.#longestBlock) {
      parts.push(this.#runBlock(whole.subarray(at, at + this.#longestBlock), false));
    }
    return concatenate(parts);
  }

  #runBlock(block: Float32Array, isLast: boolean): Float32Array {
    let [from, to] = areas;
    if (block.buffer !== from.buffer) from.set(block, HISTORY_ROOM);
    let length = block.length;
    for (const stage of this.#stages) {
      length = stage.push(from, length, to, isLast);
      [from, to] = [to, from];
    }
    return from.slice(HISTORY_ROOM, HISTORY_ROOM + length);
  }
}
