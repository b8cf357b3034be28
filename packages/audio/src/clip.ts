import {
  ASYNCH_LIMITS,
  ASYNCH_PATHS,
  DISCRETE_LIMITS,
  LENGTH_TOLERANCE_SECONDS,
  PATHS,
} from '@undertone/contract';
import type { PcmBlock } from './decode.ts';
import { AudioError } from './errors.ts';
import { MODEL_SAMPLE_RATE, modelSamples } from './resample/plan.ts';
import type { Sound } from './sound.ts';

const { minSeconds, maxSeconds } = DISCRETE_LIMITS;
const LIMITS = { min_seconds: minSeconds, max_seconds: maxSeconds };
const ACCEPTED = `${minSeconds} to ${maxSeconds} s are accepted here.`;
const ASYNCH = `the asynch interface (POST ${PATHS.asynch}${ASYNCH_PATHS.requests})`;

/** The most that a model takes. What the tolerance lets through beyond it is cut off. */
export const LONGEST_CLIP_SAMPLES: number = maxSeconds * MODEL_SAMPLE_RATE;

/** A short recording as a whole, its length checked. */
export async function readClip({ format, pieces }: Sound): Promise<{ block: PcmBlock; seconds: number }> {
  const enough =
    Math.ceil((maxSeconds + 2 * LENGTH_TOLERANCE_SECONDS) * format.sampleRate) * format.frameBytes;
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const piece of pieces) {
    parts.push(piece);
    length += piece.length;
    // A recording in memory comes in one piece, so its length is known; the rest of a longer stream is not read.
    if (length > enough && parts.length > 1) throw tooLong(`The recording is longer than ${maxSeconds} s`);
  }
  const samples = modelSamples(Math.floor(length / format.frameBytes), format.sampleRate);
  checkClipLength(samples);
  const data = (parts.length === 1 ? parts[0] : Buffer.concat(parts)) as Uint8Array;
  const outputs = { start: 0, end: Math.min(samples, LONGEST_CLIP_SAMPLES) };
  return { block: { format, data, firstFrame: 0, outputs }, seconds: samples / MODEL_SAMPLE_RATE };
}

/** Refuses a clip, of so many 16 kHz samples, that is outside the limits of the discrete interface. */
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
