import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { silentWav } from './silence.ts';
import { VOICES } from './undertone.ts';

const HEADER_BYTES = 44;

/** A long WAV that repeats the example voices: 16 bit, mono, 16 kHz. */
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

/** A stereo WAV with the voices on the left and silence on the right. */
export function oneSidedCall(mono: Buffer): Buffer {
  const samples = samplesOf(mono);
  const call = Buffer.alloc(HEADER_BYTES + 2 * samples.length);
  mono.copy(call, 0, 0, HEADER_BYTES);
  call.writeUInt32LE(call.length - 8, 4);
  call.writeUInt16LE(2, 22);
  call.writeUInt32LE(call.readUInt32LE(28) * 2, 28);
  call.writeUInt16LE(4, 32);
  call.writeUInt32LE(2 * samples.length, 40);
  for (let at = 0; at < samples.length; at += 2) samples.copy(call, HEADER_BYTES + 2 * at, at, at + 2);
  return call;
}

function samplesOf(wav: Buffer): Buffer {
  const data = wav.indexOf('data');
  return wav.subarray(data + 8, data + 8 + wav.readUInt32LE(data + 4));
}
