import { MODEL_SAMPLE_RATE } from '../rates.ts';
import { takeTurn } from '../turnstile.ts';
import { Resampler } from './resampler.ts';
import { concatenate } from './stage.ts';

const BLOCK = 16_384;

/** Samples that are in memory already -> 16 kHz, without holding the event loop. */
export async function resampleAll(samples: Float32Array, fromRate: number): Promise<Float32Array> {
  const resampler = new Resampler(fromRate, MODEL_SAMPLE_RATE);
  const parts: Float32Array[] = [];
  for (let at = 0; at < samples.length; at += BLOCK) {
    await takeTurn();
    parts.push(resampler.push(samples.subarray(at, at + BLOCK)));
  }
  parts.push(resampler.flush());
  return concatenate(parts);
}
