import { MODEL_SAMPLE_RATE } from './resample/plan.ts';

const FRAME = MODEL_SAMPLE_RATE / 50;
/** The model itself treats quieter windows as silence. */
const SILENCE_POWER = 1e-4 ** 2;
/** Between 20 ms frames, speech varies by 20 dB and more, even in a noisy room. Hum, hiss and comfort noise do not. */
const STEADY_RATIO = 10 ** 0.6;
const [QUIET, LOUD] = [0.05, 0.98];

/**
 * True if 16 kHz samples certainly contain no speech: silence or a steady sound. Saves inferences on the silent side of
 * a call. Unclear cases return false and are left to the model.
 */
export function hasNoSpeech(samples: Float32Array): boolean {
  const mean = samples.reduce((sum, value) => sum + value, 0) / samples.length;
  const powers = new Float64Array(Math.floor(samples.length / FRAME));
  let total = 0;
  for (let frame = 0, at = 0; frame < powers.length; frame++) {
    let sum = 0;
    for (const end = at + FRAME; at < end; at++) sum += ((samples[at] as number) - mean) ** 2;
    powers[frame] = sum / FRAME;
    total += sum;
  }
  if (total < SILENCE_POWER * samples.length) return true;
  powers.sort();
  const at = (share: number) => powers[Math.floor(share * (powers.length - 1))] as number;
  return at(LOUD) < STEADY_RATIO * at(QUIET);
}
