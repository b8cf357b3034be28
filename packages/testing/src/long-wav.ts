import { wav, wavHeader } from './wav.ts';

/** Ten seconds of sound over and over, at 8 kHz: long recordings that take no time to make. */
export function longWav(seconds: number): Buffer {
  const rate = 8_000;
  const loop = wav({ seconds: 10, rate }).subarray(44);
  const dataBytes = seconds * rate * 2;
  const header = wavHeader({ rate, channels: 1, bits: 16, dataBytes });
  return Buffer.concat([header, Buffer.alloc(dataBytes, loop)]);
}
