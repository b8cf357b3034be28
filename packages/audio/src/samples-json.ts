import { DISCRETE_LIMITS, LENGTH_TOLERANCE_SECONDS } from '@undertone/contract';
import { checkClipLength } from './clip.ts';
import { AudioError } from './errors.ts';
import { modelSamples } from './resample/plan.ts';

const { maxSampleMagnitude, maxSeconds, payloadSampleRate } = DISCRETE_LIMITS;
const SHAPE = 'Send {"payload": [[0.01, -0.02, ...]]}, as a JSON object or as a JSON string of it.';

const MAX_SAMPLES = Math.ceil((maxSeconds + LENGTH_TOLERANCE_SECONDS) * payloadSampleRate);
/** Three are valid. Some more are parsed so that the error message can name the mistake. */
const MAX_BRACKETS = 100;

/** Parses `{"payload": [[...]]}` and checks its length. Values slightly over 1 are clipped. */
export function readSamplesJson(bytes: Uint8Array): Float32Array {
  const list = onlyList(parseBody(bytes));
  const samples = new Float32Array(list.length);
  for (let i = 0; i < list.length; i++) samples[i] = readSample(list[i], i);
  checkLength(samples.length);
  return samples;
}

function parseBody(bytes: Uint8Array): unknown {
  checkSize(bytes);
  // Only ASCII is valid here, and latin1 is the fastest conversion.
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
  const value = parse(text);
  if (typeof value !== 'string') return value;
  if (text.includes('\\u')) checkSize(Buffer.from(value, 'latin1'));
  return parse(value);
}

/** Parsed JSON can take a hundred times the memory of its text, so elements are counted first. */
function checkSize(text: Uint8Array): void {
  let brackets = 0;
  let commas = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text[i];
    if (code === 0x2c) commas++;
    else if (code === 0x5b || code === 0x7b) brackets++;
  }
  if (brackets > MAX_BRACKETS) throw wrong(`The body has too many brackets. ${SHAPE}`);
  if (commas > MAX_SAMPLES) checkLength(commas + 1);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw wrong(`The body is not valid JSON. ${SHAPE}`);
  }
}

function checkLength(samples: number): void {
  checkClipLength(modelSamples(samples, payloadSampleRate));
}

function onlyList(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null || !('payload' in value)) {
    throw wrong(`The body has no key "payload". ${SHAPE}`);
  }
  if (Object.keys(value).length !== 1) throw wrong(`payload must be the only key. ${SHAPE}`);
  const { payload } = value;
  if (!Array.isArray(payload) || !Array.isArray(payload[0])) {
    throw wrong(`payload must be an array with one array of numbers in it. ${SHAPE}`);
  }
  if (payload.length !== 1) {
    throw wrong('payload has more than one array. Send one recording at a time, in mono.');
  }
  return payload[0];
}

function readSample(value: unknown, i: number): number {
  if (typeof value !== 'number') {
    throw wrong(`payload[0][${i}] is ${Array.isArray(value) ? 'an array' : 'not a number'}. ${SHAPE}`);
  }
  if (!(Math.abs(value) <= maxSampleMagnitude)) {
    throw wrong(
      `payload[0][${i}] is larger than ${maxSampleMagnitude}. Samples are between -1 and 1; divide 16-bit ones by 32768.`,
    );
  }
  return value > 1 ? 1 : value < -1 ? -1 : value;
}

function wrong(message: string): AudioError {
  return new AudioError('bad_request', message);
}
