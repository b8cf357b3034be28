import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CloseStack, closeOnFailure } from '../../src/stores/close-stack.ts';

test('closes in reverse order, to the end even if a step fails, and only once', async () => {
  const closed: string[] = [];
  const stack = new CloseStack();
  for (const name of ['a', 'b', 'c']) {
    stack.defer(async () => {
      closed.push(name);
      if (name !== 'a') throw new Error(name);
    });
  }
  await assert.rejects(stack.close(), /^Error: c$/);
  assert.deepEqual(closed, ['c', 'b', 'a']);
  await stack.close();
  assert.equal(closed.length, 3);
});

test('closes what was opened if opening the rest fails, and reports that failure', async () => {
  let closed = 0;
  const failing = closeOnFailure(async (opened) => {
    opened.defer(() => {
      closed++;
      throw new Error('cannot close');
    });
    throw new Error('cannot open');
  });
  await assert.rejects(failing, /cannot open/);
  assert.equal(closed, 1);
});

test('leaves everything open for its result if opening succeeds', async () => {
  let closed = 0;
  const close = await closeOnFailure(async (opened) => {
    opened.defer(() => closed++);
    return () => opened.close();
  });
  assert.equal(closed, 0);
  await close();
  assert.equal(closed, 1);
});
