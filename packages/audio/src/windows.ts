import { ASYNCH_LIMITS } from '@undertone/contract';
import { MODEL_SAMPLE_RATE } from './resample/plan.ts';
import { RingBuffer } from './ring-buffer.ts';

export interface AudioWindow {
  readonly index: number;
  /** `index * stepSeconds`, also for windows that had to look back. */
  readonly startSeconds: number;
  /** Where the step ends, which may be before it is full. */
  readonly endSeconds: number;
  /** 16 kHz, a copy of its own. */
  readonly samples: Float32Array<ArrayBuffer>;
}

/**
 * One window for each started step, as long as the step. A window that would run past the end looks back, so that it
 * is as long as the others; only a recording shorter than a window gives a shorter one.
 */
export async function* windows(
  chunks: AsyncIterable<Float32Array>,
  stepSeconds: number,
): AsyncGenerator<AudioWindow> {
  const step = Math.round(stepSeconds * MODEL_SAMPLE_RATE);
  if (!(step >= 1)) throw new RangeError(`A step must be a positive number of seconds, not ${stepSeconds}.`);
  const recent = new RingBuffer(step);
  let index = 0;
  const next = (): AudioWindow => ({
    index,
    startSeconds: index * stepSeconds,
    endSeconds: Math.min(++index * stepSeconds, recent.end / MODEL_SAMPLE_RATE),
    samples: recent.copy(),
  });

  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      const take = Math.min(chunk.length - at, (index + 1) * step - recent.end);
      recent.push(chunk.subarray(at, at + take));
      at += take;
      if (recent.end === (index + 1) * step) yield next();
    }
  }
  if (recent.end - index * step >= ASYNCH_LIMITS.minTailSeconds * MODEL_SAMPLE_RATE) yield next();
}
