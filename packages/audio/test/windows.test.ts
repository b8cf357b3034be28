import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type AudioWindow, windows } from '../src/index.ts';
import { collect } from './support/sounds.ts';

/** Samples whose values are their positions. */
const counting = (length: number): Float32Array => Float32Array.from({ length }, (_, i) => i);

async function* cut(samples: Float32Array, sizes: readonly number[]): AsyncGenerator<Float32Array> {
  for (let at = 0, turn = 0; at < samples.length; turn++) {
    const size = sizes[turn % sizes.length] ?? samples.length;
    yield samples.subarray(at, at + size);
    at += size;
  }
}

const windowsOf = (length: number, stepSeconds: number, sizes = [9999]): Promise<AudioWindow[]> =>
  collect(windows(oneChannel(cut(counting(length), sizes)), stepSeconds));

async function* oneChannel(chunks: AsyncIterable<Float32Array>): AsyncGenerator<Float32Array[]> {
  for await (const chunk of chunks) yield [chunk];
}

describe('windows', () => {
  it('there is one per started step, all of one length, for any recording and chunks', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 400_000 }),
        fc.constantFrom(1, 2.5, 5, 7),
        fc.array(fc.integer({ min: 1, max: 90_000 }), { minLength: 1, maxLength: 5 }),
        async (length, stepSeconds, sizes) => {
          const found = await windowsOf(length, stepSeconds, [...sizes, 5000]);
          const step = stepSeconds * 16_000;
          const tail = length % step >= 1600 ? 1 : 0;
          assert.equal(found.length, Math.floor(length / step) + tail);
          found.forEach(({ index, startSeconds, endSeconds, samples }, i) => {
            assert.equal(index, i);
            assert.equal(startSeconds, i * stepSeconds);
            const end = Math.min((i + 1) * step, length);
            assert.equal(endSeconds, end / 16_000);
            const start = Math.max(0, end - step);
            assert.equal(samples.length, end - start);
            assert.ok(samples.every((value, at) => value === start + at));
          });
        },
      ),
      { seed: 4, numRuns: 60 },
    );
  });

  it('a tail of at least 0.1 s has a window that reaches back', async () => {
    assert.equal((await windowsOf(160_000, 5)).length, 2);
    assert.equal((await windowsOf(161_599, 5)).length, 2);
    const [, , last] = await windowsOf(161_600, 5);
    assert.deepEqual([last?.startSeconds, last?.endSeconds], [10, 10.1]);
    assert.deepEqual([last?.samples.length, last?.samples[0]], [80_000, 81_600]);
  });

  it('are shorter only if the whole recording is', async () => {
    const [only, ...others] = await windowsOf(30_000, 5);
    assert.equal(only?.samples.length, 30_000);
    assert.equal(others.length, 0);
    assert.equal((await windowsOf(1599, 5)).length, 0);
  });

  it('there is one per step and channel', async () => {
    async function* twoChannels(): AsyncGenerator<Float32Array[]> {
      for await (const chunk of cut(counting(170_000), [33_333])) {
        yield [chunk, chunk.map((value) => -value)];
      }
    }
    const found = await collect(windows(twoChannels(), 5));
    assert.deepEqual(
      found.map(({ index, channel, endSeconds, samples }) => [index, channel, endSeconds, samples[5]]),
      [
        [0, 0, 5, 5],
        [0, 1, 5, -5],
        [1, 0, 10, 80_005],
        [1, 1, 10, -80_005],
        [2, 0, 10.625, 90_005],
        [2, 1, 10.625, -90_005],
      ],
    );
  });

  it('do not share memory', async () => {
    const [first, second] = await windowsOf(160_000, 5);
    structuredClone(first, { transfer: [first?.samples.buffer as ArrayBuffer] });
    assert.equal(second?.samples[0], 80_000);
  });

  it('an invalid step is refused', async () => {
    for (const stepSeconds of [0, -5, Number.NaN])
      await assert.rejects(windowsOf(9, stepSeconds), RangeError);
  });
});
