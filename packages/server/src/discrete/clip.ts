import type { IncomingMessage } from 'node:http';
import { MODEL_SAMPLE_RATE, readClip, resampleAll } from '@undertone/audio';
import { DISCRETE_LIMITS, LENGTH_TOLERANCE_SECONDS } from '@undertone/contract';
import { type Patience, receive } from '../http/receive.ts';
import { ProblemError } from '../problems.ts';
import { readFilePart } from './file-part.ts';
import { SamplesParser } from './samples-parser.ts';

export interface Clip {
  /** 16 kHz mono. */
  readonly samples: Float32Array;
  readonly seconds: number;
}

interface ReadOptions {
  readonly ffmpegPath: string | null;
  readonly signal: AbortSignal;
  readonly patience: Patience;
}

const { minSeconds, maxSeconds, payloadSampleRate } = DISCRETE_LIMITS;

/** The other parts of a form, their headers and boundaries. */
const FORM_OVERHEAD_BYTES = 64 * 1024;
const FORM_BYTES = DISCRETE_LIMITS.maxFileBytes + FORM_OVERHEAD_BYTES;

const HOW =
  'Send the recording as the part named file of a multipart/form-data body (`curl -F file=@voice.wav`), or prepared samples as application/json.';

/** Reads the clip out of a request, whichever of the two forms it takes. Nothing of it touches a disk. */
export function receiveClip(request: IncomingMessage, options: ReadOptions): Promise<Clip> {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers;
  const mediaType = type.split(';', 1)[0]?.trim().toLowerCase();
  if (encoding !== 'identity') {
    throw new ProblemError('unsupported_media_type', `Send the body as it is, without content-encoding.`);
  }
  if (mediaType === 'multipart/form-data') return fromForm(request, options);
  if (mediaType === 'application/json') return fromJson(request, options);
  throw new ProblemError('unsupported_media_type', HOW);
}

async function fromForm(
  request: IncomingMessage,
  { ffmpegPath, signal, patience }: ReadOptions,
): Promise<Clip> {
  const { samples, seconds } = await readFilePart(request, { ...patience, maxBytes: FORM_BYTES }, (file) =>
    readClip(file, {
      minSeconds,
      maxSeconds,
      toleranceSeconds: LENGTH_TOLERANCE_SECONDS,
      ffmpegPath,
      signal,
    }),
  );
  return { samples: withinModel(samples), seconds };
}

async function fromJson(request: IncomingMessage, { signal, patience }: ReadOptions): Promise<Clip> {
  const parser = new SamplesParser(Math.ceil((maxSeconds + LENGTH_TOLERANCE_SECONDS) * payloadSampleRate));
  const limits = { ...patience, maxBytes: DISCRETE_LIMITS.maxJsonBytes };
  await receive(request, limits, (chunk) => parser.push(chunk), signal);
  const { count, samples } = parser.end();
  const seconds = count / payloadSampleRate;
  checkLength(seconds);
  return { samples: withinModel(await resampleAll(samples, payloadSampleRate)), seconds };
}

function checkLength(seconds: number): void {
  const actual_seconds = Number(seconds.toFixed(3));
  if (seconds < minSeconds - LENGTH_TOLERANCE_SECONDS) {
    throw new ProblemError(
      'audio_too_short',
      `The payload holds ${actual_seconds} s at ${payloadSampleRate} Hz; at least ${minSeconds} s are needed.`,
      { figures: { min_seconds: minSeconds, actual_seconds } },
    );
  }
  if (seconds > maxSeconds + LENGTH_TOLERANCE_SECONDS) {
    throw new ProblemError(
      'audio_too_long',
      `The payload holds ${actual_seconds} s at ${payloadSampleRate} Hz; at most ${maxSeconds} s are taken. Longer recordings go to the asynch interface.`,
      { figures: { max_seconds: maxSeconds, actual_seconds } },
    );
  }
}

/** The padding that the tolerance lets through is more than the model takes. */
function withinModel(samples: Float32Array): Float32Array {
  return samples.subarray(0, maxSeconds * MODEL_SAMPLE_RATE);
}
