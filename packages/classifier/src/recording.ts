import {
  AudioError,
  type AudioWindow,
  cutIntoBlocks,
  hasNoSpeech,
  MODEL_SAMPLE_RATE,
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

export interface Step {
  /** 0 where all were mixed into one. */
  channel: number;
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
  /** In order of time, then channel. */
  steps: Step[];
}

type Samples = Float32Array<ArrayBuffer>;

export interface RecordingOptions {
  readonly stepSeconds: number;
  readonly channels: ChannelMode;
  /** Steps that may be classified at once: enough to keep the threads busy, few enough to keep memory small. */
  readonly inFlight: number;
  readonly maxSeconds: number;
  readonly signal: AbortSignal | undefined;
  open(signal: AbortSignal): Promise<Sound>;
  /** One list of samples for each channel that is heard. */
  decode(block: PcmBlock, signal: AbortSignal): Promise<Samples[]>;
  classify(samples: Samples, signal: AbortSignal): Promise<Heard>;
}

interface Heard {
  readonly models: Models;
  readonly speechSeconds: number;
}

/**
 * A long recording in, one classification for each started step out, in order. Reads on only as fast as windows are
 * classified.
 *
 * The model hears up to 10 s at a time. A step of up to 10 s is one window; a longer one is cut into equal windows of
 * at most 10 s, and its probabilities are their mean.
 *
 * Channels heard apart are silent most of the time: what surely has no speech is not classified, but gets what the model
 * says of silence, which is asked once.
 */
export async function classifyRecording(options: RecordingOptions): Promise<RecordingPrediction> {
  const { stepSeconds, inFlight, channels } = options;
  const stop = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal;
  const steps: Step[] = [];
  const running = new Set<Promise<void>>();
  const silences = new Map<number, Promise<Heard>>();
  let failure: { error: unknown } | undefined;

  function fail(error: unknown): void {
    failure ??= { error };
    stop.abort();
  }
  function classify(samples: Samples): Promise<Heard> {
    if (channels === 'mix' || !hasNoSpeech(samples)) return options.classify(samples, signal);
    const { length } = samples;
    const silence = silences.get(length) ?? options.classify(new Float32Array(length), signal);
    silences.set(length, silence);
    return silence;
  }
  async function classifyStep(window: AudioWindow, place: number): Promise<void> {
    const { channel, startSeconds, endSeconds, samples } = window;
    const parts = await Promise.all(cutEvenly(samples).map(classify));
    // A window that looked back is longer than its step.
    const ownShare = Math.min(1, ((endSeconds - startSeconds) * MODEL_SAMPLE_RATE) / samples.length);
    const speechSeconds = parts.reduce((sum, part) => sum + part.speechSeconds, 0) * ownShare;
    steps[place] = {
      channel,
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
    if (channels === 'separate') checkChannels(sound);
    let place = 0;
    for await (const window of windows(decoded(sound, options, signal, count), stepSeconds)) {
      // Waiting with the next window at hand: a thread that is done does not wait for the decoder.
      if (running.size >= inFlight) await Promise.race(running);
      if (failure !== undefined) break;
      const task = classifyStep(window, place++)
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
  const { sampleRate } = format;
  return { seconds: count.samples / MODEL_SAMPLE_RATE, sampleRate, channels: format.channels, steps };
}

/** 16 kHz samples of every channel that is heard, block by block. The next block is read and decoded while the last one is used. */
async function* decoded(
  { pieces, format }: Sound,
  { decode, channels, maxSeconds }: RecordingOptions,
  signal: AbortSignal,
  count: { samples: number },
): AsyncGenerator<Samples[]> {
  const blocks = cutIntoBlocks(pieces, format);
  async function next(): Promise<Samples[] | null> {
    const { value, done } = await blocks.next();
    if (done) return null;
    if (value.outputs.end > maxSeconds * MODEL_SAMPLE_RATE) throw tooLong(maxSeconds);
    return decode(channels === 'separate' ? { ...value, channel: 'each' } : value, signal);
  }
  let ahead = next();
  try {
    for (let chunk = await ahead; chunk !== null; chunk = await ahead) {
      count.samples += chunk[0]?.length ?? 0;
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

function checkChannels({ format: { channels: actual_channels } }: Sound): void {
  const max_channels = ASYNCH_LIMITS.maxChannels;
  if (actual_channels <= max_channels) return;
  throw new AudioError(
    'unreadable_audio',
    `The recording has ${actual_channels} channels; up to ${max_channels} can be heard apart. Send it without channels=separate, or fewer of them.`,
    { max_channels, actual_channels },
  );
}

function tooShort(seconds: number): AudioError {
  const min_seconds = ASYNCH_LIMITS.minSeconds;
  const actual_seconds = Number(seconds.toFixed(3));
  return new AudioError(
    'audio_too_short',
    `The recording is ${actual_seconds} s long; at least ${min_seconds} s are needed. Join recordings, or send one of ${DISCRETE_LIMITS.minSeconds} s and more to the discrete interface.`,
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
