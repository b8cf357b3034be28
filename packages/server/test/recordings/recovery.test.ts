import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { tempDir } from '@undertone/testing/app';
import { AsynchClient, filesOf } from '@undertone/testing/asynch-client';
import { killed, surviveFaults } from '@undertone/testing/crashes';
import { Random } from '@undertone/testing/random';
import { ServerProcess } from '@undertone/testing/server-process';
import { longWav } from '@undertone/testing/wav';

test('kill -9 during upload, completion and processing loses no request and leaves no audio', async () => {
  const server = new ServerProcess(await tempDir(), { SERVICE_WORKERS: '1' });
  const report = await surviveFaults(killed(server), 3, new Random(42));
  assert.deepEqual(report.moments, { upload: 1, completion: 1, processing: 1 });
});

test('after an orderly stop, processing resumes with the next start', async () => {
  const dataDir = await tempDir();
  const server = new ServerProcess(dataDir, { SERVICE_WORKERS: '1' });
  await server.start();
  const client = new AsynchClient(server.url, server.key);
  const id = await client.upload(longWav(100));
  await sleep(300);
  await server.end('SIGTERM');
  assert.equal((await filesOf(dataDir)).length, 1);
  await server.start();
  assert.equal((await client.result(id)).emotions.length, 20);
  await server.end('SIGTERM');
  assert.deepEqual(await filesOf(dataDir), []);
});
