import { MODEL_SAMPLE_RATE } from './resample/plan.ts';

const FRAME = MODEL_SAMPLE_RATE / 50;
/** The model itself takes a window below this loudness for silence. */
const SILENCE_POWER = 1e-4 ** 2;
/** In 20 ms steps talk rises and falls by 20 dB and more, even in a noisy room; hum, hiss and comfort noise do not. */
const STEADY_RATIO = 10 ** 0.6;
const [QUIET, LOUD] = [0.05, 0.98];

/**
 * Whether 16 kHz samples surely have no speech in them, told without the model: silence, or a sound that does not change.
 * The silent side of a call costs the model nothing that way. Whatever is not clear is left to the model.
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
