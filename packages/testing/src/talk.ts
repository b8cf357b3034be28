import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { VOICES } from './paths.ts';
import { silentWav, WAV_HEADER_BYTES, wavHeader } from './wav.ts';

/** A long WAV that repeats the example voices: 16 bit, mono, 16 kHz. */
export function talkWav(seconds: number): Buffer {
  const wav = silentWav(seconds);
  const voices = readdirSync(VOICES)
    .sort()
    .map((name) => samplesOf(readFileSync(join(VOICES, name))));
  for (let at = WAV_HEADER_BYTES, i = 0; at < wav.length; i++) {
    at += voices[i % voices.length]?.copy(wav, at) ?? wav.length;
  }
  return wav;
}

/** A stereo WAV with the voices on the left and silence on the right. */
export function oneSidedCall(mono: Buffer): Buffer {
  return stereoCall(mono, silentWav(0));
}

/** A stereo WAV of two mono ones with the same rate, as long as the left one. */
export function stereoCall(left: Buffer, right: Buffer): Buffer {
  const sides = [samplesOf(left), samplesOf(right)];
  const rate = left.readUInt32LE(24);
  const frames = Buffer.alloc(2 * (sides[0]?.length ?? 0));
  sides.forEach((samples, side) => {
    for (let at = 0; at < samples.length && 2 * at < frames.length; at += 2)
      samples.copy(frames, 2 * at + 2 * side, at, at + 2);
  });
  return Buffer.concat([wavHeader({ rate, channels: 2, bits: 16, dataBytes: frames.length }), frames]);
}

function samplesOf(wav: Buffer): Buffer {
  const data = wav.indexOf('data');
  return wav.subarray(data + 8, data + 8 + wav.readUInt32LE(data + 4));
}
