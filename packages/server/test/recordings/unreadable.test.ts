import assert from 'node:assert/strict';
import { readdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type TestApp, testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { problemOf } from '@undertone/testing/problem';
import { wav } from '@undertone/testing/wav';
import { StoreUnavailableError } from '../../src/stores/errors.ts';

const QUICK = {
  pollMs: 20,
  pauseMs: 20,
  renewEveryMs: 50,
  attemptDelaysMs: [20, 20],
  postponeMs: 20,
  longestPostponeMs: 50,
};
const file = wav({ seconds: 6, rate: 16_000 });

/** Uploads a recording whose bytes cannot be read. */
async function uploadUnreadable({ dataDir }: TestApp, client: AsynchClient): Promise<string> {
  const id = await client.upload(file);
  const folder = (await readdir(dataDir, { recursive: true })).find((name) => name.endsWith(id)) ?? '';
  const [part = ''] = await readdir(join(dataDir, folder));
  const path = join(dataDir, folder, part);
  await rm(path);
  await symlink('/proc/self/mem', path); // reading its first byte is a real EIO, for root too
  return id;
}

test('a recording that cannot be read fails after three attempts, and those behind it do not wait', async () => {
  const service = await testApp({ SERVICE_ASYNCH_JOBS: '1' }, { workerTimes: QUICK, storeCheckMs: 0 });
  const client = await AsynchClient.of(service);
  const unreadable = await uploadUnreadable(service, client);
  const behind = await client.upload(file);
  service.services.worker.start();
  assert.equal((await client.result(behind)).emotions.length, 2);
  const problem = await problemOf(await client.settled(unreadable), 'processing_failed');
  assert.match(problem.detail, /3 times/);
});

test('whether its store works is checked no more often than for readiness', async () => {
  const storeCheckMs = 400;
  const service = await testApp({}, { workerTimes: QUICK, storeCheckMs });
  const client = await AsynchClient.of(service);
  const { blobs } = service.stores;
  const check = blobs.checkWritable.bind(blobs);
  const checkedAt: number[] = [];
  blobs.checkWritable = () => {
    checkedAt.push(performance.now());
    return check();
  };
  const ids = [await uploadUnreadable(service, client), await uploadUnreadable(service, client)];
  await service.services.storeHealth.states();
  service.services.worker.start();
  for (const id of ids) await problemOf(await client.settled(id), 'processing_failed');
  const gaps = checkedAt.slice(1).map((at, i) => at - (checkedAt[i] ?? 0));
  assert.ok(gaps.length >= 3, 'each attempt needs a check that is newer');
  assert.ok(Math.min(...gaps) > storeCheckMs - 5, `${gaps}`);
});

test('a check from before the recording could not be read says nothing about its store', async () => {
  const service = await testApp({}, { workerTimes: QUICK, storeCheckMs: 200 });
  const client = await AsynchClient.of(service);
  const { blobs, requests } = service.stores;
  const id = await uploadUnreadable(service, client);
  await service.services.storeHealth.states();
  let checks = 0;
  blobs.checkWritable = async () => {
    checks++;
    throw new StoreUnavailableError('its disk failed');
  };
  service.services.worker.start();
  while (checks < 3) await sleep(20);
  await service.services.worker.stop();
  let claim = null;
  while (claim === null) claim = await requests.claim({ leaseMs: 60_000, running: [] });
  assert.deepEqual([claim.request.id, claim.failedAttempts], [id, 0]);
});
