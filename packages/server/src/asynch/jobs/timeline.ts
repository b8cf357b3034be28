import { type AudioWindow, MODEL_SAMPLE_RATE, windows } from '@undertone/audio';
import { MAX_SECONDS } from '@undertone/classifier';
import { formatTimestamp, type TimelineElement } from '@undertone/contract';
import { toResult } from '../../prediction.ts';

type Probabilities = Readonly<Record<string, number>>;

export interface TimelineOptions {
  readonly stepSeconds: number;
  /** Windows that may be under way at once: enough to keep the threads busy, few enough to keep memory small. */
  readonly inFlight: number;
  /** One window of at most 10 s -> the probabilities of the chosen model. */
  readonly classify: (samples: Float32Array, signal: AbortSignal) => Promise<Probabilities>;
  readonly signal: AbortSignal;
}

/**
 * 16 kHz mono -> one element for each started step, in order, reading on only as fast as windows are classified.
 *
 * The model hears up to 10 s at a time. A step of up to 10 s is one window; a longer one is cut into equal windows
 * of at most 10 s, and its probabilities are their mean.
 */
export async function makeTimeline(
  chunks: AsyncIterable<Float32Array>,
  { stepSeconds, inFlight, classify, signal }: TimelineOptions,
): Promise<TimelineElement[]> {
  const timeline: TimelineElement[] = [];
  const running = new Set<Promise<void>>();
  const stop = new AbortController();
  const stopped = AbortSignal.any([signal, stop.signal]);
  let failure: { error: unknown } | undefined;

  async function hear({ index, startSeconds, samples }: AudioWindow): Promise<void> {
    const heard = await Promise.all(pieces(samples).map((piece) => classify(piece, stopped)));
    const { main_emotion: emotion, confidence } = toResult(mean(heard));
    timeline[index] = { t: formatTimestamp(startSeconds), emotion, confidence };
  }
  function begin(window: AudioWindow): void {
    const task = hear(window)
      .catch((error: unknown) => {
        failure ??= { error };
        stop.abort();
      })
      .finally(() => running.delete(task));
    running.add(task);
  }

  try {
    for await (const window of windows(chunks, { stepSeconds })) {
      // Waiting with the next window in hand: a thread that is done does not wait for the decoder.
      if (running.size >= inFlight) await Promise.race(running);
      if (failure !== undefined) break;
      begin(window);
    }
    await Promise.all(running);
  } finally {
    stop.abort();
    await Promise.all(running);
  }
  if (failure !== undefined) throw failure.error;
  return timeline;
}

function pieces(samples: Float32Array): Float32Array[] {
  const count = Math.ceil(samples.length / (MAX_SECONDS * MODEL_SAMPLE_RATE));
  const bound = (i: number) => Math.floor((i * samples.length) / count);
  return Array.from({ length: count }, (_, i) => samples.subarray(bound(i), bound(i + 1)));
}

function mean(heard: readonly Probabilities[]): Probabilities {
  const [first = {}] = heard;
  if (heard.length === 1) return first;
  return Object.fromEntries(
    Object.keys(first).map((emotion) => [
      emotion,
      heard.reduce((sum, probabilities) => sum + (probabilities[emotion] ?? 0), 0) / heard.length,
    ]),
  );
}
