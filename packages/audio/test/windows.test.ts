import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type AudioWindow, openAudio, type WindowOptions, windows } from '../src/index.ts';
import { writeWav } from './support/wav.ts';

/** Samples that tell their own place. */
const counting = (length: number): Float32Array => Float32Array.from({ length }, (_, i) => i);

async function* cut(samples: Float32Array, sizes: readonly number[]): AsyncGenerator<Float32Array> {
  for (let at = 0, turn = 0; at < samples.length; turn++) {
    const size = sizes[turn % sizes.length] ?? samples.length;
    yield samples.subarray(at, at + size);
    at += size;
  }
}

async function windowsOf(length: number, options: WindowOptions, sizes = [9999]): Promise<AudioWindow[]> {
  const found: AudioWindow[] = [];
  for await (const window of windows(cut(counting(length), sizes), options)) found.push(window);
  return found;
}

describe('windows over a stream', () => {
  it('are one for each started step, all of one length, whatever the length and the chunks', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 400_000 }),
        fc.constantFrom(1, 2.5, 5, 7),
        fc.constantFrom(1, 3, 5, 8),
        fc.array(fc.integer({ min: 1, max: 90_000 }), { minLength: 1, maxLength: 5 }),
        async (length, stepSeconds, windowSeconds, sizes) => {
          const found = await windowsOf(length, { stepSeconds, windowSeconds }, [...sizes, 5000]);
          const step = stepSeconds * 16_000;
          const full = windowSeconds * 16_000;
          const tail = length % step >= 1600 ? 1 : 0;
          assert.equal(found.length, Math.floor(length / step) + tail);
          found.forEach(({ index, startSeconds, samples }, i) => {
            assert.equal(index, i);
            assert.equal(startSeconds, i * stepSeconds);
            const end = Math.min(i * step + full, length);
            const start = Math.max(0, end - full);
            assert.equal(samples.length, end - start);
            assert.equal(samples[0], start);
            assert.equal(samples.at(-1), end - 1);
            assert.ok(samples.every((value, at) => value === start + at));
          });
        },
      ),
      { seed: 4, numRuns: 150 },
    );
  });

  it('count a tail from 0.1 s on, and look back for it', async () => {
    assert.equal((await windowsOf(160_000, { stepSeconds: 5 })).length, 2);
    assert.equal((await windowsOf(161_599, { stepSeconds: 5 })).length, 2);
    const [, , last] = await windowsOf(161_600, { stepSeconds: 5 });
    assert.deepEqual([last?.startSeconds, last?.samples.length, last?.samples[0]], [10, 80_000, 81_600]);
  });

  it('are shorter only where the whole recording is', async () => {
    const [only, ...others] = await windowsOf(30_000, { stepSeconds: 5 });
    assert.equal(only?.samples.length, 30_000);
    assert.equal(others.length, 0);
    assert.equal((await windowsOf(1599, { stepSeconds: 5 })).length, 0);
  });

  it('belong to whoever gets them', async () => {
    const [first, second] = await windowsOf(160_000, { stepSeconds: 5 });
    assert.notEqual(first?.samples.buffer, second?.samples.buffer);
    structuredClone(first, { transfer: [first?.samples.buffer as ArrayBuffer] });
    assert.equal(second?.samples[0], 80_000);
  });

  it('need a step that is a length of time', async () => {
    for (const stepSeconds of [0, -5, Number.NaN]) {
      await assert.rejects(windowsOf(9, { stepSeconds }), RangeError);
    }
  });

  it('pass over two hours in the memory of a few seconds', async () => {
    const hour = 3600;
    async function* twoHours(): AsyncGenerator<Uint8Array> {
      yield writeWav([], { sampleRate: 16_000, dataSize: 0xffff_ffff });
      for (let second = 0; second < 2 * hour; second++) yield Buffer.alloc(32_000, second);
    }
    const before = process.memoryUsage().arrayBuffers;
    let most = 0;
    let count = 0;
    for await (const _ of windows((await openAudio(twoHours())).chunks, { stepSeconds: 5 })) {
      count++;
      most = Math.max(most, process.memoryUsage().arrayBuffers);
    }
    assert.equal(count, (2 * hour) / 5);
    assert.ok(most - before < 150e6, `${Math.round((most - before) / 1e6)} MB of 460 MB were held at once`);
  });
});
