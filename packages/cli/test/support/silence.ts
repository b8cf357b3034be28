import { writeWav } from '@undertone/testing/write-wav';

const RATE = 16_000;

/** A WAV file of silence: 16 bit, mono, 16 kHz. */
export function silentWav(seconds: number): Buffer {
  return writeWav(new Float32Array(Math.round(seconds * RATE)), { sampleRate: RATE });
}
