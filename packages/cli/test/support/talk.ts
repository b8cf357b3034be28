import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { silentWav } from './silence.ts';
import { VOICES } from './undertone.ts';

const HEADER_BYTES = 44;

/** A long WAV of real voices, one after another, over and over: 16 bit, mono, 16 kHz. */
export function talkWav(seconds: number): Buffer {
  const wav = silentWav(seconds);
  const voices = readdirSync(VOICES)
    .sort()
    .map((name) => samplesOf(readFileSync(join(VOICES, name))));
  for (let at = HEADER_BYTES, i = 0; at < wav.length; i++) {
    at += voices[i % voices.length]?.copy(wav, at) ?? wav.length;
  }
  return wav;
}

function samplesOf(wav: Buffer): Buffer {
  const data = wav.indexOf('data');
  return wav.subarray(data + 8, data + 8 + wav.readUInt32LE(data + 4));
}
