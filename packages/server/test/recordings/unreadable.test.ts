import assert from 'node:assert/strict';
import { readdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { problemOf } from '@undertone/testing/problem';
import { wav } from '@undertone/testing/wav';

const QUICK = { pollMs: 20, pauseMs: 20, renewEveryMs: 50, attemptDelaysMs: [20, 20], postponeMs: 20 };
const file = wav({ seconds: 6, rate: 16_000 });

test('a recording that cannot be read fails after three attempts, and those behind it do not wait', async () => {
  const service = await testApp({ SERVICE_ASYNCH_JOBS: '1' }, { workerTimes: QUICK });
  const client = await AsynchClient.of(service);
  const unreadable = await client.upload(file);
  const folder = (await readdir(service.dataDir, { recursive: true })).find((name) =>
    name.endsWith(unreadable),
  );
  const [part = ''] = await readdir(join(service.dataDir, folder ?? ''));
  const path = join(service.dataDir, folder ?? '', part);
  await rm(path);
  await symlink('/proc/self/mem', path); // reading its first byte is a real EIO, for root too
  const behind = await client.upload(file);
  service.services.worker.start();
  assert.equal((await client.result(behind)).emotions.length, 2);
  const problem = await problemOf(await client.settled(unreadable), 'processing_failed');
  assert.match(problem.detail, /3 times/);
});
