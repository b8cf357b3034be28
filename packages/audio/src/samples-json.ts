import { DISCRETE_LIMITS } from '@undertone/contract';
import { AudioError } from './errors.ts';

const { maxSampleMagnitude } = DISCRETE_LIMITS;
const SHAPE = 'Send {"payload": [[0.01, -0.02, ...]]}, as a JSON object or as a JSON string of it.';

/** Prepared samples: one key, `payload`, with one list of numbers in a list. Values a little over 1 are clipped. */
export function readSamplesJson(bytes: Uint8Array): Float32Array {
  const list = onlyList(parse(bytes));
  const samples = new Float32Array(list.length);
  for (let i = 0; i < list.length; i++) {
    const value: unknown = list[i];
    if (typeof value !== 'number') {
      throw wrong(`payload[0][${i}] is ${Array.isArray(value) ? 'an array' : 'not a number'}. ${SHAPE}`);
    }
    if (!(Math.abs(value) <= maxSampleMagnitude)) {
      throw wrong(
        `payload[0][${i}] is larger than ${maxSampleMagnitude}. Samples are between -1 and 1; divide 16-bit ones by 32768.`,
      );
    }
    samples[i] = value > 1 ? 1 : value < -1 ? -1 : value;
  }
  return samples;
}

function parse(bytes: Uint8Array): unknown {
  try {
    // Nothing outside ASCII is valid here, and one character for each byte is the fastest way to text.
    const value: unknown = JSON.parse(
      Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1'),
    );
    return typeof value === 'string' ? JSON.parse(value) : value;
  } catch {
    throw wrong(`The body is not valid JSON. ${SHAPE}`);
  }
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
  if (payload.length !== 1)
    throw wrong('payload has more than one array. Send one recording at a time, in mono.');
  return payload[0];
}

function wrong(message: string): AudioError {
  return new AudioError('bad_request', message);
}
