import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STREAM_ENCODINGS } from '@undertone/contract';
import { Random } from '@undertone/testing/random';
import { cut } from '@undertone/testing/stream-audio';
import fc from 'fast-check';
import { type StreamWindow, StreamWindows, streamFormat } from '../../src/streams/windows.ts';

const RATE = 8_000;
const format = streamFormat('mulaw', RATE, 1);

function windowsOf(pieces: readonly Buffer[], interval: number, of = format): StreamWindow[] {
  const windows = new StreamWindows(of, interval);
  const found = pieces.flatMap((piece) => [...windows.push(piece)]);
  const tail = windows.end();
  return tail === null ? found : [...found, tail];
}

const spans = (seconds: number, interval: number) =>
  windowsOf([Buffer.alloc(seconds * RATE)], interval).map(({ startSeconds, endSeconds }) => [
    startSeconds,
    endSeconds,
  ]);

test('default interval: a window every 5 s, and a tail of at least 1 s', () => {
  assert.deepEqual(spans(12, 5), [
    [0, 5],
    [5, 10],
    [7, 12],
  ]);
  assert.deepEqual(spans(10.9, 5), [
    [0, 5],
    [5, 10],
  ]);
});

test('shorter interval: the first window after 4 s, then overlapping windows', () => {
  assert.deepEqual(spans(7.5, 1), [
    [0, 4],
    [0, 5],
    [1, 6],
    [2, 7],
  ]);
  assert.deepEqual(spans(10, 3), [
    [0, 4],
    [2, 7],
    [5, 10],
  ]);
});

test('longer interval: windows and tail still cover the last 5 s', () => {
  assert.deepEqual(spans(18, 10), [
    [0, 5],
    [10, 15],
    [13, 18],
  ]);
});

test('a stream shorter than a window is one window; under 1 s there is none', () => {
  assert.deepEqual(spans(2.5, 5), [[0, 2.5]]);
  assert.deepEqual(spans(0.99, 5), []);
  assert.deepEqual(windowsOf([], 5), []);
});

test('a window holds exactly the last 5 s of bytes, in whole frames', () => {
  const bytes = new Random(1).bytes(7 * RATE * 8 + 5);
  const stereo = streamFormat('pcm_f32le', RATE, 2);
  const [first, tail] = windowsOf([bytes], 5, stereo);
  assert.deepEqual(Buffer.from(first?.block.data ?? []), bytes.subarray(0, 5 * RATE * 8));
  assert.deepEqual(Buffer.from(tail?.block.data ?? []), bytes.subarray(2 * RATE * 8, 7 * RATE * 8));
});

test('windows do not depend on how the bytes are split into messages, odd sizes included', () => {
  const bytes = new Random(2).bytes(9 * RATE * 4 + 3);
  const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 7 }), fc.integer({ min: 1, max: 300_000 })), {
    minLength: 1,
    maxLength: 20,
  });
  const encoding = fc.constantFrom(...STREAM_ENCODINGS);
  const channels = fc.integer({ min: 1, max: 2 });
  const interval = fc.integer({ min: 1, max: 10 });
  fc.assert(
    fc.property(sizes, encoding, channels, interval, (sizes, encoding, channels, interval) => {
      const of = streamFormat(encoding, RATE, channels);
      // One larger piece: tiny ones alone would be a thousand times slower.
      const pieces = cut(bytes, [...sizes, 50_021]);
      assert.deepEqual(windowsOf(pieces, interval, of), windowsOf([bytes], interval, of));
    }),
    { numRuns: 60 },
  );
});
