import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { compilePolyphase, polyphaseBinary } from '../scripts/compile-polyphase.ts';
import { Resampler, resampleAll } from '../src/index.ts';
import { concatenate } from '../src/resample/stage.ts';
import { power, random, signalToNoise, sine } from './support/sounds.ts';

const realRates = [
  8000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 88_200, 96_000, 176_400, 192_000,
];
const oddRates = [8001, 12_345, 15_999, 44_101, 47_999, 191_999];

function resample(samples: Float32Array, from: number, to = 16_000, chunk = samples.length): Float32Array {
  const resampler = new Resampler(from, to);
  const parts: Float32Array[] = [];
  for (let at = 0; at < samples.length; at += chunk)
    parts.push(resampler.push(samples.subarray(at, at + chunk)));
  return concatenate([...parts, resampler.flush()]);
}

/** Where the filter's start and end transients are over. */
const settled = (samples: Float32Array): [number, number] => [800, samples.length - 800];

describe('the resampler', () => {
  for (const rate of [...realRates, ...oddRates]) {
    it(`keeps tones of the pass band from ${rate} Hz to 16 kHz, in place and in strength, to 100 dB`, () => {
      const edge = Math.min(rate, 16_000) / 2;
      for (const share of [0.02, 0.25, 0.6, 0.9]) {
        const output = resample(sine(0.5, rate, share * edge), rate);
        const expected = sine(0.5, 16_000, share * edge);
        assert.ok(signalToNoise(expected, output, ...settled(output)) > 100, `${share * edge} Hz`);
      }
    });
  }

  for (const rate of [...realRates, ...oddRates].filter((rate) => rate > 16_000)) {
    it(`removes what 16 kHz cannot hold from ${rate} Hz recordings by 100 dB`, () => {
      for (const frequency of [8000, 8100, 8800, 11_000, 15_900, 16_100, 24_100, 40_000, 79_900, 95_900]) {
        if (frequency >= rate / 2) continue;
        const input = sine(0.5, rate, frequency, 0.9);
        const output = resample(input, rate);
        const down = power(input) - power(output.subarray(...settled(output)));
        assert.ok(down > 100, `${frequency} Hz is only ${down.toFixed(1)} dB down`);
      }
    });
  }

  it('gives identical output however the input is cut', () => {
    const noise = random(7);
    const input = Float32Array.from({ length: 6000 }, () => noise() * 2 - 1);
    fc.assert(
      fc.property(
        fc.constantFrom(...realRates, ...oddRates),
        fc.array(fc.integer({ min: 0, max: 3000 }), { maxLength: 30 }),
        (rate, cuts) => {
          const resampler = new Resampler(rate, 16_000);
          const parts: Float32Array[] = [];
          let at = 0;
          for (const cut of cuts) {
            parts.push(resampler.push(input.subarray(at, at + cut)));
            at = Math.min(input.length, at + cut);
          }
          parts.push(resampler.push(input.subarray(at)), resampler.flush());
          assert.deepEqual(concatenate(parts), resample(input, rate));
        },
      ),
      { seed: 1, numRuns: 150 },
    );
  });

  it('gives round(n * to / from) samples for any rates and lengths', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 8000, max: 192_000 }),
        fc.constantFrom(8000, 16_000, 44_100, 48_000),
        fc.integer({ min: 0, max: 20_000 }),
        (from, to, length) => {
          assert.equal(resample(new Float32Array(length), from, to).length, Math.round((length * to) / from));
        },
      ),
      { seed: 2, numRuns: 100 },
    );
  });

  it('works upwards too, so that recordings can be offered at other rates', () => {
    for (const to of [22_050, 44_100, 48_000, 192_000]) {
      const output = resample(sine(0.5, 16_000, 2000), 16_000, to);
      const margin = Math.round(to / 20);
      const match = signalToNoise(sine(0.5, to, 2000), output, margin, output.length - margin);
      assert.ok(match > 100, `to ${to}: ${match.toFixed(1)} dB`);
    }
  });

  it('hands 16 kHz through untouched', () => {
    const input = sine(0.2, 16_000, 440);
    assert.deepEqual(resample(input, 16_000), input);
  });

  it('is not disturbed by others that work at the same time at many other rates', () => {
    const input = sine(0.3, 44_100, 700);
    const alone = resample(input, 44_100, 16_000, 1000);
    const resampler = new Resampler(44_100, 16_000);
    const parts: Float32Array[] = [];
    for (let at = 0; at < input.length; at += 1000) {
      parts.push(resampler.push(input.subarray(at, at + 1000)));
      resample(sine(0.02, 20_011 + at, 300), 20_011 + at);
    }
    assert.deepEqual(concatenate([...parts, resampler.flush()]), alone);
  });

  it('refuses rates that are none', () => {
    for (const rate of [0, -1, Number.NaN, 44_100.5, Number.POSITIVE_INFINITY, 10_000_000]) {
      assert.throws(() => new Resampler(rate, 16_000), RangeError);
    }
  });

  it('takes samples in memory as a whole, with the same result', async () => {
    const input = sine(4.5, 44_100, 500);
    assert.deepEqual(await resampleAll(input, 44_100), resample(input, 44_100));
  });

  it('runs the kernel that its source describes', async () => {
    assert.deepEqual(new Uint8Array(await readFile(polyphaseBinary)), await compilePolyphase());
  });
});
