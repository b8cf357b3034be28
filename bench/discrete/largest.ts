import { DISCRETE_LIMITS } from '@undertone/contract';
import { fileForm } from '@undertone/testing/form';
import { WAV_HEADER_BYTES, writeWav } from '@undertone/testing/wav';
import { voiceLike } from '../support/voice.ts';

const RATE = 192_000;
const CHUNK_HEADER_BYTES = 8;

/** A valid recording of exactly the maximum size: the largest allowed sound, padded with a text chunk. */
export function largestForm(): Buffer {
  const { maxSeconds, maxFileBytes } = DISCRETE_LIMITS;
  const soundBytes = maxSeconds * RATE * 2 * 8;
  const filler = Buffer.alloc(maxFileBytes - WAV_HEADER_BYTES - soundBytes - CHUNK_HEADER_BYTES, 'text ');
  const file = writeWav(voiceLike(maxSeconds, RATE), {
    encoding: 'float64',
    sampleRate: RATE,
    channels: 2,
    after: [['LIST', filler]],
  });
  if (file.length !== maxFileBytes) throw new Error(`the file has ${file.length} bytes`);
  return fileForm(file);
}
