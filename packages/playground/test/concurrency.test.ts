import assert from 'node:assert/strict';
import { test } from 'node:test';
import { concurrencyLimit } from '../src/concurrency.ts';

test('never runs more than the limit, even if work is added at the moment a slot becomes free', async () => {
  const run = concurrencyLimit(3);
  const gates = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
  const started: number[] = [];
  const work = (id: number) =>
    run(() => {
      started.push(id);
      return gates[id]?.promise ?? Promise.reject();
    });
  const all = [0, 1, 2, 3].map(work);
  // Runs right after the slot of 0 is released, and before 3, which waits for it, has started.
  all.push(gates[0]?.promise.then(() => work(4)) ?? Promise.reject());
  gates[0]?.resolve();
  await all[0];
  assert.deepEqual(started, [0, 1, 2, 3], 'only the first in line takes the slot');
  for (const { resolve } of gates) resolve();
  await Promise.all(all);
  assert.deepEqual(started, [0, 1, 2, 3, 4]);
});

test('work that fails frees its slot', async () => {
  const run = concurrencyLimit(1);
  const failing = run(() => Promise.reject(new Error('failed')));
  const next = run(() => Promise.resolve('done'));
  await assert.rejects(failing, /failed/);
  assert.equal(await next, 'done');
});
