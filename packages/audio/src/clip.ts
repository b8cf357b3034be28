import type { ByteSource } from './byte-reader.ts';
import { AudioError } from './errors.ts';
import { type OpenOptions, openAudio } from './open.ts';
import { MODEL_SAMPLE_RATE } from './rates.ts';
import { concatenate } from './resample/stage.ts';

export interface ClipOptions extends OpenOptions {
  readonly minSeconds: number;
  readonly maxSeconds: number;
  /** Recorders and codecs pad: how far beyond either limit a recording may be. */
  readonly toleranceSeconds: number;
}

export interface Clip {
  /** 16 kHz mono. */
  readonly samples: Float32Array;
  readonly seconds: number;
  /** Of the recording as it came. */
  readonly sampleRate: number;
}

/** A short recording, whole. Stops reading as soon as it is too long, whatever its header says. */
export async function readClip(bytes: ByteSource, options: ClipOptions): Promise<Clip> {
  const { minSeconds, maxSeconds, toleranceSeconds } = options;
  const audio = await openAudio(bytes, options);
  const fewest = Math.round((minSeconds - toleranceSeconds) * MODEL_SAMPLE_RATE);
  const most = Math.round((maxSeconds + toleranceSeconds) * MODEL_SAMPLE_RATE);

  const parts: Float32Array[] = [];
  let length = 0;
  for await (const chunk of audio.chunks) {
    length += chunk.length;
    if (length > most) throw tooLong(audio.declaredSeconds, length / MODEL_SAMPLE_RATE, options);
    parts.push(chunk);
  }
  const seconds = length / MODEL_SAMPLE_RATE;
  if (length < fewest) throw tooShort(seconds, options);
  return { samples: concatenate(parts), seconds, sampleRate: audio.sampleRate };
}

function tooShort(seconds: number, { minSeconds, maxSeconds }: ClipOptions): AudioError {
  const actual = round(seconds);
  return new AudioError(
    'audio_too_short',
    `The recording is ${actual} s long; ${minSeconds} to ${maxSeconds} s are accepted.`,
    { min_seconds: minSeconds, max_seconds: maxSeconds, actual_seconds: actual },
  );
}

/** The true length is not known, since nothing after the limit was read: the header's word has to do. */
function tooLong(declared: number | null, read: number, { minSeconds, maxSeconds }: ClipOptions): AudioError {
  const limits = { min_seconds: minSeconds, max_seconds: maxSeconds };
  const accepted = `${minSeconds} to ${maxSeconds} s are accepted`;
  if (declared === null || declared < read) {
    return new AudioError(
      'audio_too_long',
      `The recording is longer than ${maxSeconds} s; ${accepted}.`,
      limits,
    );
  }
  const actual = round(declared);
  return new AudioError('audio_too_long', `The recording is ${actual} s long; ${accepted}.`, {
    ...limits,
    actual_seconds: actual,
  });
}

function round(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}
