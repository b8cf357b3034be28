import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { VOICES } from './paths.ts';
import { WAV_HEADER_BYTES, wavHeader } from './wav.ts';

const RATE = 16_000;
/** A multiple of the step, because a step with just a fragment of a word has no reliable emotion. */
const TURN_SECONDS = 20;
const PAUSE_SECONDS = 0.4;

/** Two speakers taking turns, one angry on the left and one sad on the right, of any length. */
export async function stereoCall(
  seconds: number,
): Promise<{ file: Buffer; left: Int16Array; right: Int16Array }> {
  const [angry, sad] = await Promise.all([voice('angry-1013'), voice('sad-1016')]);
  const length = Math.round(seconds * RATE);
  const frames = new Int16Array(2 * length);
  const [left, right] = [new Int16Array(length), new Int16Array(length)];
  for (let i = 0; i < length; i++) {
    const turn = Math.floor(i / RATE / TURN_SECONDS);
    const [side, speech] = turn % 2 === 0 ? [left, angry] : [right, sad];
    // The sentence repeated from its start, with a short pause in between.
    side[i] = speech[(i - turn * TURN_SECONDS * RATE) % (speech.length + PAUSE_SECONDS * RATE)] ?? 0;
    frames[2 * i] = left[i] ?? 0;
    frames[2 * i + 1] = right[i] ?? 0;
  }
  const header = wavHeader({ rate: RATE, channels: 2, bits: 16, dataBytes: frames.byteLength });
  return { file: Buffer.concat([header, Buffer.from(frames.buffer)]), left, right };
}

/** The samples of an example voice. */
async function voice(name: string): Promise<Int16Array> {
  const file = await readFile(join(VOICES, `${name}.wav`));
  if (file.readUInt32LE(24) !== RATE) throw new Error(`${name} is not at ${RATE} Hz`);
  return new Int16Array(
    file.buffer.slice(file.byteOffset + WAV_HEADER_BYTES, file.byteOffset + file.length - (file.length % 2)),
  );
}
