import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatTimestamp, parseTimestamp } from '../src/index.ts';

test('seconds become minutes and seconds of two digits each', () => {
  assert.deepEqual([0, 5, 10, 55, 60, 65, 3599, 3600].map(formatTimestamp), [
    '00:00',
    '00:05',
    '00:10',
    '00:55',
    '01:00',
    '01:05',
    '59:59',
    '60:00',
  ]);
});

test('minutes continue past 99', () => {
  assert.equal(formatTimestamp(125 * 60 + 5), '125:05');
});

test('a timestamp parses back to its whole seconds', () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1e7, noNaN: true }), (seconds) => {
      const stamp = formatTimestamp(seconds);
      assert.match(stamp, /^\d{2,}:[0-5]\d$/);
      assert.equal(parseTimestamp(stamp), Math.floor(seconds));
    }),
  );
});

test('timestamps sort like their seconds', () => {
  const second = fc.integer({ min: 0, max: 10_000_000 });
  fc.assert(
    fc.property(second, second, (a, b) => {
      const order = (stamp: string) => Number(stamp.replace(':', ''));
      assert.equal(Math.sign(a - b), Math.sign(order(formatTimestamp(a)) - order(formatTimestamp(b))));
    }),
  );
});

test('negative and non-finite seconds are refused', () => {
  for (const seconds of [-1, -0.001, Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.throws(() => formatTimestamp(seconds), RangeError);
  }
});
