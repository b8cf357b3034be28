import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cellsOf } from '../src/cells.ts';
import { filtered, hitsOf, nextHit, segmentsOf } from '../src/segments.ts';
import { step } from './support/steps.ts';

const steps = [
  step(0, 'angry', 0.9),
  step(5, 'angry', 0.5),
  step(10, 'angry', 0.3),
  step(15, 'sad', 0.8),
  step(20, 'angry', 0.95),
];

test('neighbours with the same label become one segment with their mean confidence', () => {
  assert.deepEqual(
    segmentsOf(steps).map(({ start, end, label, confidence }) => [start, end, label, confidence]),
    [
      [0, 10, 'angry', 0.7],
      [10, 15, 'unsure', 0.3],
      [15, 20, 'sad', 0.8],
      [20, 25, 'angry', 0.95],
    ],
  );
});

test('channels are joined separately although their steps alternate', () => {
  const both = [0, 5].flatMap((at) => [
    step(at, 'sad', 0.8, { channel: 0 }),
    step(at, 'happy', 0.8, { channel: 1 }),
  ]);
  assert.deepEqual(
    segmentsOf(both).map(({ channel, start, end }) => [channel, start, end]),
    [
      [0, 0, 10],
      [1, 0, 10],
    ],
  );
});

test('a filter keeps the chosen labels, and an empty one keeps all', () => {
  const segments = segmentsOf(steps);
  assert.equal(filtered(segments, new Set()).length, 4);
  assert.deepEqual(
    filtered(segments, new Set(['unsure', 'sad'] as const)).map(({ label }) => label),
    ['unsure', 'sad'],
  );
});

test('next and previous find an emotion from a confidence on, and start over at the end', () => {
  const hits = hitsOf(steps, 'angry', 0.6);
  assert.deepEqual(
    hits.map(({ start, end }) => [start, end]),
    [
      [0, 5],
      [20, 25],
    ],
  );
  assert.equal(nextHit(hits, -1)?.start, 0);
  assert.equal(nextHit(hits, 0)?.start, 20);
  assert.equal(nextHit(hits, 20.02)?.start, 0);
  assert.equal(nextHit(hits, 12, 'previous')?.start, 0);
  assert.equal(nextHit([], 0), undefined);
});

test('steps narrower than two pixels become the label with the most confidence', () => {
  const cells = cellsOf(steps, 4);
  assert.deepEqual(
    cells.map(({ start, end, emotion }) => [start, end, emotion]),
    [
      [0, 10, 'angry'],
      [10, 25, 'angry'],
    ],
  );
  assert.equal(cellsOf(steps, 1000).length, 5);
});
