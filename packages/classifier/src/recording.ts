import {
  AudioError,
  type AudioWindow,
  cutIntoBlocks,
  type Ffmpeg,
  hasNoSpeech,
  MODEL_SAMPLE_RATE,
  openSound,
  type PcmBlock,
  type RecordingSource,
  type Sound,
  windows,
} from '@undertone/audio';
import {
  ASYNCH_LIMITS,
  type ChannelMode,
  DISCRETE_LIMITS,
  LENGTH_TOLERANCE_SECONDS,
} from '@undertone/contract';
import { MAX_WINDOW_SECONDS, type Models } from './prediction.ts';
import type { TaskQueue } from './task-queue.ts';

export interface Step {
  /** 0 if the channels are mixed. */
  channel: number;
  startSeconds: number;
  endSeconds: number;
  /** Seconds of speech within the step. */
  speechSeconds: number;
  models: Models;
}

export interface RecordingPrediction {
  seconds: number;
  sampleRate: number;
  channels: number;
  /** Ordered by time, then channel. */
  steps: Step[];
}

export interface RecordingOptions {
  readonly stepSeconds: number;
  readonly channels?: ChannelMode;
  readonly maxSeconds?: number;
  /** Of the result: steps, for every separate channel. */
  readonly maxElements?: number;
  /** Owners of waiting windows take turns. */
  readonly owner?: string;
  readonly signal?: AbortSignal;
  /** Called with the share of the recording that was read so far. */
  readonly onProgress?: (share: number) => void;
}

type Samples = Float32Array<ArrayBuffer>;
type WindowPrediction = Pick<Step, 'models' | 'speechSeconds'>;

/**
 * Classifies each started step of a long recording, at the lowest priority. Reads on only as fast as windows are
 * classified.
 *
 * The model takes up to 10 s at a time. A longer step is cut into equal windows of at most 10 s, and its probabilities
 * are their mean.
 *
 * Separate channels are silent most of the time. Windows that certainly have no speech get the model's result for
 * silence, which is computed once.
 */
export async function classifyRecording(
  source: RecordingSource,
  options: RecordingOptions,
  { queue, ffmpeg }: { queue: TaskQueue; ffmpeg: Ffmpeg },
): Promise<RecordingPrediction> {
  const { stepSeconds, channels = 'mix', maxSeconds = ASYNCH_LIMITS.maxSeconds, onProgress } = options;
  const { maxElements = ASYNCH_LIMITS.maxElements } = options;
  const separate = channels === 'separate';
  const stop = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal;
  const taskOptions = { priority: 'asynch', owner: options.owner, signal } as const;
  // One more than the threads, so that a thread that is done finds the next window waiting.
  const maxInFlight = queue.stats().threads + 1;
  const steps: Step[] = [];
  const running = new Set<Promise<void>>();
  const silences = new Map<number, Promise<WindowPrediction>>();
  let totalSamples = 0;
  let failure: { error: unknown } | undefined;

  function fail(error: unknown): void {
    failure ??= { error };
    stop.abort();
  }
  async function infer(data: Samples): Promise<WindowPrediction> {
    return (await queue.run({ kind: 'window', data }, taskOptions)).output;
  }
  function classify(samples: Samples): Promise<WindowPrediction> {
    if (!separate || !hasNoSpeech(samples)) return infer(samples);
    const { length } = samples;
    const silence = silences.get(length) ?? infer(new Float32Array(length));
    silences.set(length, silence);
    return silence;
  }
  async function classifyStep(window: AudioWindow, index: number): Promise<void> {
    const { channel, startSeconds, endSeconds, samples } = window;
    const parts = await Promise.all(cutEvenly(samples).map(classify));
    // The last window may reach back before its step.
    const ownShare = Math.min(1, ((endSeconds - startSeconds) * MODEL_SAMPLE_RATE) / samples.length);
    const speechSeconds = parts.reduce((sum, part) => sum + part.speechSeconds, 0) * ownShare;
    const models = mean(parts.map(({ models }) => models));
    steps[index] = { channel, startSeconds, endSeconds, speechSeconds, models };
  }
  /** 16 kHz samples of every channel, block by block. The next block is decoded while the last one is used. */
  async function* decode({ pieces, format }: Sound): AsyncGenerator<Samples[]> {
    const blocks = cutIntoBlocks(pieces, format);
    async function next(): Promise<Samples[] | null> {
      const { value: block, done } = await blocks.next();
      if (done) return null;
      if (block.outputs.end > maxSeconds * MODEL_SAMPLE_RATE) throw tooLong(maxSeconds);
      const steps = Math.floor(block.outputs.end / MODEL_SAMPLE_RATE / stepSeconds);
      const own = separate ? format.channels : 1;
      if (steps * own > maxElements) throw tooLarge({ maxSeconds, maxElements, channels: own, stepSeconds });
      const wanted: PcmBlock = separate ? { ...block, channel: 'each' } : block;
      return (await queue.run({ kind: 'decode', ...wanted }, taskOptions)).output.channels;
    }
    let ahead = next();
    try {
      for (let chunk = await ahead; chunk !== null; chunk = await ahead) {
        totalSamples += chunk[0]?.length ?? 0;
        ahead = next();
        // Awaited above, unless the loop ends first.
        ahead.catch(() => undefined);
        yield chunk;
      }
      const minSamples = (ASYNCH_LIMITS.minSeconds - LENGTH_TOLERANCE_SECONDS) * MODEL_SAMPLE_RATE;
      if (totalSamples < minSamples) throw tooShort(totalSamples / MODEL_SAMPLE_RATE);
    } finally {
      await blocks.return(undefined);
    }
  }

  let sound: Sound | undefined;
  try {
    const watched = onProgress === undefined ? source : watchProgress(source, onProgress);
    sound = await openSound(watched, { ffmpeg, kind: 'recording', signal });
    if (separate) checkChannels(sound);
    let index = 0;
    for await (const window of windows(decode(sound), stepSeconds)) {
      // Wait with the next window ready, so that an idle thread does not wait for the decoder.
      if (running.size >= maxInFlight) await Promise.race(running);
      if (failure !== undefined) break;
      const task = classifyStep(window, index++)
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
  const { format } = sound as Sound;
  const seconds = totalSamples / MODEL_SAMPLE_RATE;
  return { seconds, sampleRate: format.sampleRate, channels: format.channels, steps };
}

/** Reports the share of the source that was read. It never falls. */
function watchProgress(source: RecordingSource, onProgress: (share: number) => void): RecordingSource {
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

function checkChannels({ format: { channels: actual_channels } }: Sound): void {
  const max_channels = ASYNCH_LIMITS.maxChannels;
  if (actual_channels <= max_channels) return;
  throw new AudioError(
    'unreadable_audio',
    `The recording has ${actual_channels} channels; up to ${max_channels} can be analysed separately. Send fewer channels, or leave out channels=separate.`,
    { max_channels, actual_channels },
  );
}

function tooShort(seconds: number): AudioError {
  const min_seconds = ASYNCH_LIMITS.minSeconds;
  const actual_seconds = Number(seconds.toFixed(3));
  return new AudioError(
    'audio_too_short',
    `The recording is ${actual_seconds} s long; at least ${min_seconds} s are needed. Join recordings, or send ${DISCRETE_LIMITS.minSeconds} s and more to the discrete interface.`,
    { min_seconds, actual_seconds },
  );
}

/** The longest recording fits with the interval that it names. */
function tooLarge(limits: {
  maxSeconds: number;
  maxElements: number;
  channels: number;
  stepSeconds: number;
}): AudioError {
  const { maxElements: max_elements, channels, stepSeconds: interval } = limits;
  const min_interval = Math.ceil((limits.maxSeconds * channels) / max_elements);
  const each = channels > 1 ? ` for each of ${channels} channels` : '';
  return new AudioError(
    'result_too_large',
    `One prediction every ${interval} s${each} makes more than ${max_elements.toLocaleString('en')} predictions. Use interval=${min_interval} or more${channels > 1 ? ', or leave out channels=separate' : ''}.`,
    { max_elements, interval, min_interval, channels },
  );
}

function tooLong(max_seconds: number): AudioError {
  return new AudioError(
    'audio_too_long',
    `The recording is longer than ${max_seconds / 3600} hours. Split it into shorter ones.`,
    { max_seconds },
  );
}
