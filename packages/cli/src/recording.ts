import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import { AudioError, type Clip, MODEL_SAMPLE_RATE, readClip } from '@undertone/audio';
import { DISCRETE_LIMITS, LENGTH_TOLERANCE_SECONDS } from '@undertone/contract';
import { Failure } from './failure.ts';

const { minSeconds, maxSeconds } = DISCRETE_LIMITS;

export const STANDARD_INPUT = '-';

/** Reads a short recording whole, within the limits of the discrete interface. */
export async function readRecording(file: string): Promise<Clip> {
  const piped = file === STANDARD_INPUT;
  try {
    const clip = await readClip(piped ? process.stdin : createReadStream(file), {
      minSeconds,
      maxSeconds,
      toleranceSeconds: LENGTH_TOLERANCE_SECONDS,
      ...(!piped && { filePath: resolve(file) }),
    });
    // What the tolerance lets through is more than the model takes.
    return { ...clip, samples: clip.samples.subarray(0, maxSeconds * MODEL_SAMPLE_RATE) };
  } catch (error) {
    throw explainReading(error);
  }
}

function explainReading(error: unknown): unknown {
  if (error instanceof AudioError && error.code === 'audio_too_long') {
    return new AudioError(
      error.code,
      `${error.message} \`undertone upload\` is for longer ones: it gives an emotion for every 5 seconds.`,
      error.figures,
    );
  }
  const reasons: Record<string, string> = {
    ENOENT: 'There is no such file.',
    EISDIR: 'This is a folder. Name the recordings in it, as in `undertone classify folder/*.wav`.',
    EACCES: 'You may not read this file.',
  };
  const reason = reasons[(error as NodeJS.ErrnoException).code ?? ''];
  return reason === undefined ? error : new Failure(reason, { cause: error });
}
