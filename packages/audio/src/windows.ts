import { ASYNCH_LIMITS } from '@undertone/contract';
import { MODEL_SAMPLE_RATE } from './resample/plan.ts';
import { RingBuffer } from './ring-buffer.ts';

export interface AudioWindow {
  readonly index: number;
  readonly channel: number;
  /** `index * stepSeconds`, also for a last window that reaches back before it. */
  readonly startSeconds: number;
  /** End of the step; earlier for an incomplete last step. */
  readonly endSeconds: number;
  /** 16 kHz, not shared with other windows. */
  readonly samples: Float32Array<ArrayBuffer>;
}

/**
 * Yields one window per started step and channel, as long as the step. The last window reaches back so that it has the
 * full length; only a recording shorter than a step has a shorter window.
 *
 * A chunk has equally many samples of every channel. Windows of one step are yielded in order of their channel.
 */
export async function* windows(
  chunks: AsyncIterable<readonly Float32Array[]>,
  stepSeconds: number,
): AsyncGenerator<AudioWindow> {
  const step = Math.round(stepSeconds * MODEL_SAMPLE_RATE);
  if (!(step >= 1)) throw new RangeError(`A step must be a positive number of seconds, not ${stepSeconds}.`);
  let recent: RingBuffer<Float32Array<ArrayBuffer>>[] = [];
  let index = 0;
  let end = 0;
  function* next(): Generator<AudioWindow> {
    const startSeconds = index * stepSeconds;
    const endSeconds = Math.min((index + 1) * stepSeconds, end / MODEL_SAMPLE_RATE);
    for (const [channel, ring] of recent.entries()) {
      yield { index, channel, startSeconds, endSeconds, samples: ring.copy() };
    }
    index++;
  }

  for await (const chunk of chunks) {
    if (recent.length === 0) recent = chunk.map(() => new RingBuffer(new Float32Array(step)));
    const length = chunk[0]?.length ?? 0;
    for (let at = 0; at < length; ) {
      const take = Math.min(length - at, (index + 1) * step - end);
      for (const [channel, ring] of recent.entries()) ring.push(samplesOf(chunk, channel, at, at + take));
      at += take;
      end += take;
      if (end === (index + 1) * step) yield* next();
    }
  }
  if (end - index * step >= ASYNCH_LIMITS.minTailSeconds * MODEL_SAMPLE_RATE) yield* next();
}

function samplesOf(
  chunk: readonly Float32Array[],
  channel: number,
  start: number,
  end: number,
): Float32Array {
  return (chunk[channel] as Float32Array).subarray(start, end);
}
