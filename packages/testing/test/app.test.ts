import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type TestApp, testApp } from '../src/app.ts';

const made: TestApp[] = [];

// Two, because the second one uses what the first one started.
for (const which of ['first', 'second']) {
  test(`the ${which} app made inside a test`, async () => {
    made.push(await testApp());
  });
}

test('each was closed with its test', async () => {
  assert.equal(made.length, 2);
  for (const { stores } of made) await assert.rejects(stores.keys.list());
});
