import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HeldBytes } from '../src/held-bytes.ts';

test('an owner may hold as many bytes as are free, and gives them back', () => {
  const held = new HeldBytes(1_000);
  const [first, second] = [held.hold('anna'), held.hold('anna')];
  assert.ok(first.resize(400));
  assert.ok(!second.resize(201), 'half of all, if nobody else holds any');
  assert.ok(second.resize(100));
  assert.ok(!first.resize(401));
  const other = held.hold('ben');
  assert.ok(!other.resize(501));
  assert.ok(other.resize(500));
  assert.deepEqual(
    [...held.byOwner()],
    [
      ['anna', 500],
      ['ben', 500],
    ],
  );
  assert.ok(first.resize(10), 'fewer always fit');
  first.release();
  second.release();
  other.release();
  other.release();
  assert.equal(held.byOwner().size, 0);
  assert.ok(other.resize(1_000));
});
