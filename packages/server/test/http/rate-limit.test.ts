import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TokenBuckets } from '../../src/stores/sql/limits.ts';

test('no interval allows more than the burst plus its share of the rate', () => {
  const steps = fc.array(fc.nat(5_000), { minLength: 1, maxLength: 300 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 120 }), steps, (perMinute, pauses) => {
      let now = 0;
      const buckets = new TokenBuckets(() => now);
      const allowed: number[] = [];
      for (const pause of pauses) {
        now += pause;
        if (buckets.take('key', perMinute).allowed) allowed.push(now);
      }
      for (const [i, from] of allowed.entries()) {
        const last = allowed.at(-1) ?? from;
        const most = perMinute + ((last - from) / 60_000) * perMinute;
        assert.ok(allowed.length - i <= most + 1e-6);
      }
    }),
    { seed: 3 },
  );
});

test('after the announced wait the next request is allowed', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000 }), (perMinute) => {
      let now = 0;
      const buckets = new TokenBuckets(() => now);
      let allowance = buckets.take('key', perMinute);
      while (allowance.allowed) allowance = buckets.take('key', perMinute);
      now += allowance.retryAfterSeconds * 1_000 + 1e-6;
      assert.ok(buckets.take('key', perMinute).allowed);
    }),
    { seed: 5 },
  );
});

test('names do not share tokens', () => {
  const buckets = new TokenBuckets(() => 0);
  assert.ok(buckets.take('a', 1).allowed);
  assert.ok(!buckets.take('a', 1).allowed);
  assert.ok(buckets.take('b', 1).allowed);
});
