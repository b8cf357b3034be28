import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { Random } from '@undertone/testing/random';
import fc from 'fast-check';
import { compilePolyphase, polyphaseBinary } from '../scripts/compile-polyphase.ts';
import { resampleAll } from '../src/index.ts';
import { framesFor, planStages } from '../src/resample/plan.ts';
import { resample } from '../src/resample/resample.ts';
import { power, signalToNoise, sine } from './support/sounds.ts';

const realRates = [
  8000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 88_200, 96_000, 176_400, 192_000,
];
const oddRates = [8001, 12_345, 15_999, 44_101, 47_999, 191_999];

/** Without the transients of the filter at start and end. */
const settled = (samples: Float32Array): [number, number] => [800, samples.length - 800];

describe('the resampler', () => {
  for (const rate of [...realRates, ...oddRates]) {
    it(`keeps phase and amplitude of pass-band tones from ${rate} Hz, to 100 dB`, () => {
      const edge = Math.min(rate, 16_000) / 2;
      for (const share of [0.02, 0.25, 0.6, 0.9]) {
        const output = resampleAll(sine(0.5, rate, share * edge), rate);
        const expected = sine(0.5, 16_000, share * edge);
        assert.ok(signalToNoise(expected, output, ...settled(output)) > 100, `${share * edge} Hz`);
      }
    });
  }

  for (const rate of [...realRates, ...oddRates].filter((rate) => rate > 16_000)) {
    it(`attenuates aliases of ${rate} Hz recordings by 100 dB`, () => {
      for (const frequency of [8000, 8100, 8800, 11_000, 15_900, 16_100, 24_100, 40_000, 79_900, 95_900]) {
        if (frequency >= rate / 2) continue;
        const input = sine(0.5, rate, frequency, 0.9);
        const output = resampleAll(input, rate);
        const down = power(input) - power(output.subarray(...settled(output)));
        assert.ok(down > 100, `${frequency} Hz is only ${down.toFixed(1)} dB down`);
      }
    });
  }

  it('computes any part of the output from the frames that framesFor names', () => {
    const noise = new Random(7);
    const input = Float32Array.from({ length: 300_000 }, () => noise.next() * 2 - 1);
    fc.assert(
      fc.property(
        fc.constantFrom(...realRates, ...oddRates),
        fc.array(fc.nat(20_000), { minLength: 2, maxLength: 2 }),
        (rate, bounds) => {
          const [start, end] = bounds.toSorted((a, b) => a - b) as [number, number];
          const frames = framesFor(planStages(rate), { start, end });
          const first = Math.max(0, frames.start);
          const part = resample(input.slice(first, Math.max(first, frames.end)), first, rate, { start, end });
          assert.deepEqual(part, resampleAll(input, rate).slice(start, end));
        },
      ),
      { seed: 1, numRuns: 30 },
    );
  });

  it('gives round(n * 16,000 / rate) samples for any rate and length', () => {
    fc.assert(
      fc.property(fc.integer({ min: 8000, max: 192_000 }), fc.nat(20_000), (rate, length) => {
        const { length: given } = resampleAll(new Float32Array(length), rate);
        assert.equal(given, Math.round((length * 16_000) / rate));
      }),
      { seed: 2, numRuns: 100 },
    );
  });

  it('leaves 16 kHz unchanged', () => {
    const input = sine(0.2, 16_000, 440);
    assert.deepEqual(resampleAll(input, 16_000), input);
  });

  it('gives the same result after its filter cache overflowed', () => {
    const input = sine(0.3, 44_100, 700);
    const before = resampleAll(input, 44_100);
    for (let rate = 20_011; rate < 20_060; rate++) resampleAll(sine(0.02, rate, 300), rate);
    assert.deepEqual(resampleAll(input, 44_100), before);
  });

  it('uses a binary that matches polyphase.wat', async () => {
    assert.deepEqual(new Uint8Array(await readFile(polyphaseBinary)), await compilePolyphase());
  });
});
