import {
  ASYNCH_LIMITS,
  ASYNCH_PATHS,
  DISCRETE_LIMITS,
  LENGTH_TOLERANCE_SECONDS,
  PATHS,
} from '@undertone/contract';
import type { PcmBlock } from './decode.ts';
import { AudioError, needsFfmpeg } from './errors.ts';
import { MODEL_SAMPLE_RATE, modelSamples } from './resample/plan.ts';
import { checkSampleRate, type PcmFormat, readWav } from './wav.ts';

const { minSeconds, maxSeconds } = DISCRETE_LIMITS;
const LIMITS = { min_seconds: minSeconds, max_seconds: maxSeconds };
const ACCEPTED = `${minSeconds} to ${maxSeconds} s are accepted here.`;
const ASYNCH = `the asynch interface (POST ${PATHS.asynch}${ASYNCH_PATHS.requests})`;

/** The model's maximum. Samples beyond it, within the length tolerance, are dropped. */
export const MAX_CLIP_SAMPLES: number = maxSeconds * MODEL_SAMPLE_RATE;

/**
 * Checks a short recording: a WAV file, or raw samples if `pcm` says what they are. Rejects compressed WAV with
 * `unsupported_media_type`: ffmpeg has to convert it first.
 */
export function readClip(bytes: Uint8Array, pcm?: PcmFormat): { block: PcmBlock; seconds: number } {
  const sound = pcm === undefined ? readWav(bytes) : { format: pcm, data: bytes };
  if (sound === null) throw needsFfmpeg('wav');
  const { format, data } = sound;
  checkSampleRate(format);
  const samples = modelSamples(Math.floor(data.length / format.frameBytes), format.sampleRate);
  checkClipLength(samples);
  const outputs = { start: 0, end: Math.min(samples, MAX_CLIP_SAMPLES) };
  return { block: { format, data, firstFrame: 0, outputs }, seconds: samples / MODEL_SAMPLE_RATE };
}

/** The bytes of a stream of samples. Rejects as soon as it is too long for a clip, without reading the rest. */
export async function collectClip(pieces: AsyncIterable<Uint8Array>, format: PcmFormat): Promise<Uint8Array> {
  const maxBytes =
    Math.ceil((maxSeconds + 2 * LENGTH_TOLERANCE_SECONDS) * format.sampleRate) * format.frameBytes;
  const collected: Uint8Array[] = [];
  let length = 0;
  for await (const piece of pieces) {
    collected.push(piece);
    length += piece.length;
    if (length > maxBytes) throw tooLong(`The recording is longer than ${maxSeconds} s`);
  }
  return Buffer.concat(collected, length);
}

/** Throws if a clip with this many 16 kHz samples is outside the limits of the discrete interface. */
export function checkClipLength(samples: number): void {
  const actual = Number((samples / MODEL_SAMPLE_RATE).toFixed(3));
  if (samples < Math.round((minSeconds - LENGTH_TOLERANCE_SECONDS) * MODEL_SAMPLE_RATE)) {
    throw new AudioError(
      'audio_too_short',
      `The recording is ${actual} s long; ${ACCEPTED} Join it with the sentences around it, or send ${ASYNCH_LIMITS.minSeconds} s and more to ${ASYNCH}.`,
      { ...LIMITS, actual_seconds: actual },
    );
  }
  if (samples > Math.round((maxSeconds + LENGTH_TOLERANCE_SECONDS) * MODEL_SAMPLE_RATE)) {
    throw tooLong(`The recording is ${actual} s long`, { actual_seconds: actual });
  }
}

function tooLong(what: string, figures: Record<string, number> = {}): AudioError {
  const message = `${what}; ${ACCEPTED} Longer recordings go to ${ASYNCH}.`;
  return new AudioError('audio_too_long', message, { ...LIMITS, ...figures });
}
