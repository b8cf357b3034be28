import { MODEL_SAMPLE_RATE } from './rates.ts';
import { Recent } from './recent.ts';

export interface WindowOptions {
  readonly stepSeconds: number;
  /** How long each window is; as long as a step where not given. */
  readonly windowSeconds?: number | undefined;
}

export interface AudioWindow {
  readonly index: number;
  /** `index * stepSeconds`, also for windows that had to look back. */
  readonly startSeconds: number;
  /** 16 kHz mono, a copy of its own: give it away freely. */
  readonly samples: Float32Array;
}

/** What is left after the last whole step counts as one more from this length on. */
const SHORTEST_TAIL_SECONDS = 0.1;

/**
 * One window for each started step. A window that would run past the end looks back, so that it is
 * as long as the others; only a recording shorter than a window gives a shorter one.
 */
export async function* windows(
  chunks: AsyncIterable<Float32Array>,
  { stepSeconds, windowSeconds = stepSeconds }: WindowOptions,
): AsyncGenerator<AudioWindow> {
  const step = wholeSamples('stepSeconds', stepSeconds);
  const length = wholeSamples('windowSeconds', windowSeconds);
  const recent = new Recent(length);
  let index = 0;

  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      // Stopping exactly where a window ends means that no more than one window is ever kept.
      const take = Math.min(chunk.length - at, index * step + length - recent.end);
      recent.push(chunk.subarray(at, at + take));
      at += take;
      if (recent.end === index * step + length) {
        yield { index, startSeconds: index * stepSeconds, samples: recent.copy() };
        index++;
      }
    }
  }
  const shortestTail = SHORTEST_TAIL_SECONDS * MODEL_SAMPLE_RATE;
  for (; recent.end - index * step >= shortestTail; index++) {
    yield { index, startSeconds: index * stepSeconds, samples: recent.copy() };
  }
}

function wholeSamples(name: string, seconds: number): number {
  const samples = Math.round(seconds * MODEL_SAMPLE_RATE);
  if (samples >= 1) return samples;
  throw new RangeError(`${name} must be a positive number of seconds, not ${seconds}.`);
}
