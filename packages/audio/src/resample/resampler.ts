import { planStages } from './plan.ts';
import { concatenate, Stage } from './stage.ts';

/**
 * Changes the sample rate of a stream. The output is the same however the input is cut into chunks,
 * lines up with it in time, and is `round(inputs * toRate / fromRate)` samples long.
 */
export class Resampler {
  readonly #stages: readonly Stage[];
  readonly #ratio: number;
  #received = 0;
  #sent = 0;

  constructor(fromRate: number, toRate: number) {
    this.#stages = planStages(fromRate, toRate).map((plan) => new Stage(plan));
    this.#ratio = toRate / fromRate;
  }

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
      const part = this.#run(new Float32Array(1024));
      parts.push(part);
      length += part.length;
    }
    this.#sent += missing;
    return concatenate(parts).slice(0, missing);
  }

  #run(chunk: Float32Array): Float32Array {
    return this.#stages.reduce((samples, stage) => stage.push(samples), chunk).slice();
  }
}
