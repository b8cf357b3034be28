import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { testApp } from '@undertone/testing/app';

test('a single process does not load the PostgreSQL and S3 modules', async () => {
  await testApp();
  const { cache } = createRequire(import.meta.url);
  const loaded = Object.keys(cache);
  assert.ok(loaded.some((path) => path.includes('/node_modules/fastify/')));
  assert.deepEqual(
    loaded.filter((path) => /node_modules\/(pg|@aws-sdk|@smithy)\//.test(path)),
    [],
  );
});
