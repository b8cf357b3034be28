import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clamped, following, isWhole, panned, zoomed } from '../src/view.ts';

test('zooming keeps the second under the cursor where it is', () => {
  const view = zoomed({ from: 0, to: 100 }, 2, 25, 100);
  assert.deepEqual(view, { from: 12.5, to: 62.5 });
  assert.equal((25 - view.from) / (view.to - view.from), 0.25);
});

test('a view stays inside the recording, however far one zooms or pans', () => {
  assert.deepEqual(zoomed({ from: 0, to: 100 }, 0.5, 50, 100), { from: 0, to: 100 });
  assert.deepEqual(zoomed({ from: 40, to: 44 }, 100, 42, 100), { from: 41, to: 43 });
  assert.deepEqual(panned({ from: 80, to: 100 }, 50, 100), { from: 80, to: 100 });
  assert.deepEqual(panned({ from: 10, to: 30 }, -50, 100), { from: 0, to: 20 });
  assert.deepEqual(clamped({ from: 0, to: 5 }, 1), { from: 0, to: 1 });
});

test('playback turns the page of a zoomed view', () => {
  assert.deepEqual(following({ from: 0, to: 20 }, 10, 100), { from: 0, to: 20 });
  assert.deepEqual(following({ from: 0, to: 20 }, 20, 100), { from: 20, to: 40 });
  assert.deepEqual(following({ from: 0, to: 20 }, 95, 100), { from: 80, to: 100 });
  assert.ok(isWhole({ from: 0, to: 100 }, 100));
  assert.ok(!isWhole({ from: 0, to: 99 }, 100));
});
