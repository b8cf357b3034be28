import {
  AudioError,
  type AudioWindow,
  cutIntoBlocks,
  MODEL_SAMPLE_RATE,
  type PcmBlock,
  type RecordingSource,
  type Sound,
  windows,
} from '@undertone/audio';
import { ASYNCH_LIMITS, LENGTH_TOLERANCE_SECONDS } from '@undertone/contract';
import { MAX_WINDOW_SECONDS, type Models } from './prediction.ts';

export interface Step {
  startSeconds: number;
  endSeconds: number;
  /** Within the step. */
  speechSeconds: number;
  models: Models;
}

export interface RecordingPrediction {
  seconds: number;
  sampleRate: number;
  channels: number;
  steps: Step[];
}

type Samples = Float32Array<ArrayBuffer>;

export interface RecordingOptions {
  readonly stepSeconds: number;
  /** Steps that may be classified at once: enough to keep the threads busy, few enough to keep memory small. */
  readonly inFlight: number;
  readonly maxSeconds: number;
  readonly signal: AbortSignal | undefined;
  open(signal: AbortSignal): Promise<Sound>;
  decode(block: PcmBlock, signal: AbortSignal): Promise<Samples>;
  classify(samples: Samples, signal: AbortSignal): Promise<{ models: Models; speechSeconds: number }>;
}

/**
 * A long recording in, one classification for each started step out, in order. Reads on only as fast as windows are
 * classified.
 *
 * The model hears up to 10 s at a time. A step of up to 10 s is one window; a longer one is cut into equal windows of
 * at most 10 s, and its probabilities are their mean.
 */
export async function classifyRecording(options: RecordingOptions): Promise<RecordingPrediction> {
  const { stepSeconds, inFlight, classify } = options;
  const stop = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal;
  const steps: Step[] = [];
  const running = new Set<Promise<void>>();
  let failure: { error: unknown } | undefined;

  function fail(error: unknown): void {
    failure ??= { error };
    stop.abort();
  }
  async function classifyStep({ index, startSeconds, endSeconds, samples }: AudioWindow): Promise<void> {
    const parts = await Promise.all(cutEvenly(samples).map((part) => classify(part, signal)));
    // A window that looked back is longer than its step.
    const ownShare = Math.min(1, ((endSeconds - startSeconds) * MODEL_SAMPLE_RATE) / samples.length);
    const speechSeconds = parts.reduce((sum, part) => sum + part.speechSeconds, 0) * ownShare;
    steps[index] = {
      startSeconds,
      endSeconds,
      speechSeconds,
      models: mean(parts.map(({ models }) => models)),
    };
  }

  let sound: Sound | undefined;
  const count = { samples: 0 };
  try {
    sound = await options.open(signal);
    for await (const window of windows(decoded(sound, options, signal, count), stepSeconds)) {
      // Waiting with the next window at hand: a thread that is done does not wait for the decoder.
      if (running.size >= inFlight) await Promise.race(running);
      if (failure !== undefined) break;
      const task = classifyStep(window)
        .catch(fail)
        .finally(() => running.delete(task));
      running.add(task);
    }
  } catch (error) {
    fail(error);
  } finally {
    sound?.close();
  }
  await Promise.all(running);
  if (failure !== undefined) throw failure.error;
  const { sampleRate, channels } = (sound as Sound).format;
  return { seconds: count.samples / MODEL_SAMPLE_RATE, sampleRate, channels, steps };
}

/** 16 kHz samples, block by block. The next block is read and decoded while the last one is used. */
async function* decoded(
  { pieces, format }: Sound,
  { decode, maxSeconds }: RecordingOptions,
  signal: AbortSignal,
  count: { samples: number },
): AsyncGenerator<Samples> {
  const blocks = cutIntoBlocks(pieces, format);
  async function next(): Promise<Samples | null> {
    const { value, done } = await blocks.next();
    if (done) return null;
    if (value.outputs.end > maxSeconds * MODEL_SAMPLE_RATE) throw tooLong(maxSeconds);
    return decode(value, signal);
  }
  let ahead = next();
  try {
    for (let chunk = await ahead; chunk !== null; chunk = await ahead) {
      count.samples += chunk.length;
      ahead = next();
      // It is looked at above, unless the loop is left first.
      ahead.catch(() => undefined);
      yield chunk;
    }
    const fewest = (ASYNCH_LIMITS.minSeconds - LENGTH_TOLERANCE_SECONDS) * MODEL_SAMPLE_RATE;
    if (count.samples < fewest) throw tooShort(count.samples / MODEL_SAMPLE_RATE);
  } finally {
    await blocks.return(undefined);
  }
}

/** Tells how much of the source was read, as a share that only grows. */
export function watchProgress(source: RecordingSource, onProgress: (share: number) => void): RecordingSource {
  let bytes = 0;
  return {
    size: source.size,
    async *read(start?: number, end?: number) {
      for await (const piece of source.read(start, end)) {
        bytes += piece.length;
        onProgress(Math.min(1, bytes / source.size));
        yield piece;
      }
    },
  };
}

function cutEvenly(samples: Samples): Samples[] {
  const count = Math.ceil(samples.length / (MAX_WINDOW_SECONDS * MODEL_SAMPLE_RATE));
  const bound = (i: number) => Math.floor((i * samples.length) / count);
  return Array.from({ length: count }, (_, i) => samples.subarray(bound(i), bound(i + 1)));
}

function mean(parts: readonly Models[]): Models {
  const [first = {}] = parts;
  if (parts.length === 1) return first;
  const average = (model: string, emotion: string): number =>
    parts.reduce((sum, models) => sum + (models[model]?.[emotion] ?? 0), 0) / parts.length;
  return Object.fromEntries(
    Object.entries(first).map(([model, emotions]) => [
      model,
      Object.fromEntries(Object.keys(emotions).map((emotion) => [emotion, average(model, emotion)])),
    ]),
  );
}

function tooShort(seconds: number): AudioError {
  const min_seconds = ASYNCH_LIMITS.minSeconds;
  const actual_seconds = Number(seconds.toFixed(3));
  return new AudioError(
    'audio_too_short',
    `The recording is ${actual_seconds} s long; at least ${min_seconds} s are needed. Shorter ones go to the discrete interface.`,
    { min_seconds, actual_seconds },
  );
}

function tooLong(max_seconds: number): AudioError {
  return new AudioError(
    'audio_too_long',
    `The recording is longer than ${max_seconds / 3600} hours. Cut it into shorter ones.`,
    { max_seconds },
  );
}
