import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { makeTimeline } from '../../src/asynch/jobs/timeline.ts';

const RATE = 16_000;
const never = new AbortController().signal;

/** Every sample is the second it belongs to. */
async function* sound(seconds: number, chunk = 7_000): AsyncGenerator<Float32Array> {
  const total = Math.round(seconds * RATE);
  for (let at = 0; at < total; at += chunk) {
    yield Float32Array.from({ length: Math.min(chunk, total - at) }, (_, i) => Math.floor((at + i) / RATE));
  }
}

const flat = { angry: 0.4, happy: 0.3, neutral: 0.2, sad: 0.1 };

describe('the time line', () => {
  test('has one element for each started step, at its time, whatever the length', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 500, max: 8_000 }),
        async (stepSeconds, centiseconds) => {
          const seconds = centiseconds / 100;
          const timeline = await makeTimeline(sound(seconds), {
            stepSeconds,
            inFlight: 3,
            classify: async () => flat,
            signal: never,
          });
          const steps = Math.floor(seconds / stepSeconds);
          const tail = Number((seconds - steps * stepSeconds).toFixed(6));
          assert.equal(timeline.length, steps + (tail >= 0.1 ? 1 : 0));
          for (const [i, { t }] of timeline.entries()) {
            const [minutes, rest] = t.split(':').map(Number);
            assert.equal((minutes ?? 0) * 60 + (rest ?? 0), i * stepSeconds);
          }
        },
      ),
      { seed: 7, numRuns: 30 },
    );
  });

  test('keeps its order although answers come out of order', async () => {
    const timeline = await makeTimeline(sound(40), {
      stepSeconds: 5,
      inFlight: 4,
      classify: async (samples) => {
        const second = samples[0] ?? 0;
        await sleep(second % 2 === 0 ? 20 : 1);
        return { happy: 0.5 + second / 100, sad: 0.5 - second / 100 };
      },
      signal: never,
    });
    assert.deepEqual(
      timeline.map(({ confidence }) => confidence),
      [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85],
    );
  });

  test('never has more windows under way than it may, and reads no further ahead', async () => {
    let underWay = 0;
    let most = 0;
    let read = 0;
    let answered = 0;
    async function* counted(): AsyncGenerator<Float32Array> {
      for await (const chunk of sound(200)) {
        read += chunk.length / RATE;
        assert.ok(read <= (answered + 4) * 5 + 1, `${read} s read with ${answered} windows answered`);
        yield chunk;
      }
    }
    await makeTimeline(counted(), {
      stepSeconds: 5,
      inFlight: 3,
      classify: async () => {
        most = Math.max(most, ++underWay);
        await sleep(1);
        underWay--;
        answered++;
        return flat;
      },
      signal: never,
    });
    assert.equal(most, 3);
  });

  test('hears the model’s whole 10 s at most: longer steps are the mean of equal windows', async () => {
    const lengths: number[] = [];
    const timeline = await makeTimeline(sound(50), {
      stepSeconds: 25,
      inFlight: 2,
      classify: async (samples) => {
        lengths.push(samples.length);
        const high = (samples[0] ?? 0) % 25 === 0;
        return { angry: high ? 0.9 : 0.3, happy: high ? 0.1 : 0.7 };
      },
      signal: never,
    });
    assert.equal(lengths.length, 6);
    assert.ok(lengths.every((length) => Math.abs(length - (25 * RATE) / 3) <= 1));
    assert.deepEqual(timeline, [
      { t: '00:00', emotion: 'angry', confidence: 0.5 },
      { t: '00:25', emotion: 'angry', confidence: 0.5 },
    ]);
  });

  test('ends with the first failure, stops the rest and reads no more', async () => {
    let closed = false;
    let stopped = 0;
    async function* watched(): AsyncGenerator<Float32Array> {
      try {
        yield* sound(1_000);
      } finally {
        closed = true;
      }
    }
    const classify = async (samples: Float32Array, signal: AbortSignal) => {
      if (samples[0] === 10) throw new Error('this window');
      await sleep(5_000, undefined, { signal }).catch(() => stopped++);
      return flat;
    };
    const failing = makeTimeline(watched(), { stepSeconds: 5, inFlight: 4, classify, signal: never });
    await assert.rejects(failing, /this window/);
    assert.ok(closed);
    assert.equal(stopped, 2, 'both windows that were under way');
  });

  test('ends at once when it is aborted', async () => {
    const abort = new AbortController();
    const start = performance.now();
    const running = makeTimeline(sound(1_000), {
      stepSeconds: 5,
      inFlight: 2,
      classify: (_samples, signal) => sleep(60_000, flat, { signal }),
      signal: abort.signal,
    });
    setTimeout(() => abort.abort(new Error('not wanted')), 20);
    await assert.rejects(running);
    assert.ok(performance.now() - start < 1_000);
  });
});
