// Checks the promises of docs/PRIVACY.md: what the data folder holds after each stage, and when it is erased.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ASYNCH_LIMITS } from '@undertone/contract';
import { sharedClassifier, type TestApp, testApp } from '@undertone/testing/app';
import { AsynchClient, filesOf } from '@undertone/testing/asynch-client';
import { problemOf } from '@undertone/testing/problem';
import { SHORT_TIMEOUT_MS } from '@undertone/testing/timeouts';
import { longWav, wav } from '@undertone/testing/wav';
import { createLogger } from '../../src/index.ts';
import { DATABASE_FILE } from '../../src/stores/sqlite/open.ts';
import { Clock } from './support/clock.ts';

const HOUR = 3_600_000;

/** The contents of all files in the data folder. */
async function everything(dataDir: string): Promise<Buffer> {
  const names = (await readdir(dataDir, { recursive: true, withFileTypes: true })).filter((e) => e.isFile());
  return Buffer.concat(await Promise.all(names.map((e) => readFile(join(e.parentPath, e.name)))));
}

async function eventually(check: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await check()); tries++) {
    assert.ok(tries < 1_000, 'timed out');
    await sleep(10);
  }
}

interface Timed {
  service: TestApp;
  client: AsynchClient;
  clock: Clock;
}

async function timed(): Promise<Timed> {
  const clock = new Clock();
  const service = await testApp({}, { now: clock.now });
  return { service, clock, client: await AsynchClient.of(service) };
}

// Started here, so that its threads belong to the file and not to the first test.
await sharedClassifier();

describe('stored data', () => {
  test('parts until they are processed, then only the result', async () => {
    const { service, client } = await timed();
    assert.deepEqual(await filesOf(service.dataDir), []);
    const file = wav({ seconds: 6 });
    const upload = await client.send(file, 2, { file_name: 'my-secret-diary.wav' });
    const stored = await filesOf(service.dataDir);
    assert.equal(stored.length, 2);
    assert.ok(stored.every((path) => path.startsWith(`uploads/${upload.request_id}/`)));
    await client.complete(upload);
    assert.deepEqual(await filesOf(service.dataDir), stored);

    service.services.worker.start();
    const result = await client.result(upload.request_id);
    await eventually(async () => (await service.stores.blobs.groups()).length === 0);
    assert.deepEqual(await client.result(upload.request_id), result, 'the result is kept');
    const bytes = await everything(service.dataDir);
    assert.ok(bytes.includes(JSON.stringify(result.emotions)));
    assert.ok(!bytes.includes('secret-diary'), 'the file name is not stored');
    assert.ok(!bytes.includes(file.subarray(5_000, 5_064)), 'no audio is left');
  });

  test('of a deleted request only its id, for a day, to answer a second DELETE', async () => {
    const { service, client, clock } = await timed();
    service.services.worker.start();
    const id = await client.upload(wav({ seconds: 6 }));
    const result = await client.result(id);
    await client.delete(id);
    await eventually(async () => (await filesOf(service.dataDir)).length === 0);
    await service.sweep.run();
    const bytes = await everything(service.dataDir);
    assert.ok(!bytes.includes(JSON.stringify(result.emotions)));
    clock.ms += 48 * HOUR;
    await service.sweep.run();
    assert.ok(!(await everything(service.dataDir)).includes(id));
  });

  test('files are readable by their owner only', async () => {
    const { service, client } = await timed();
    await client.send(randomBytes(100), 1);
    const entries = await readdir(service.dataDir, { recursive: true, withFileTypes: true });
    assert.ok(entries.some(({ name }) => name === 'undertone.db-wal'));
    for (const entry of entries) {
      const { mode } = await stat(join(entry.parentPath, entry.name));
      assert.equal(mode & 0o077, 0, entry.name);
    }
  });

  test('the log has no file name, signature or key', async () => {
    let log = '';
    const write = (line: string) => {
      log += line;
    };
    const logger = createLogger('debug', { write });
    const service = await testApp({}, { logger });
    service.services.worker.start();
    const client = await AsynchClient.of(service);
    const upload = await client.send(wav({ seconds: 5 }), 1, { file_name: 'my-secret-diary.wav' });
    await client.complete(upload);
    await client.result(upload.request_id);
    await client.upload(randomBytes(1000), 1, { file_name: 'my-secret-diary.wav' });
    assert.match(log, /upload\/initiate/);
    assert.doesNotMatch(log, /secret-diary|signature=/);
    assert.ok(!log.includes(client.key));
    assert.ok(
      !log.includes(new URL(upload.presigned_urls[0]?.url ?? '').searchParams.get('signature') ?? '-'),
    );
  });
});

describe('24 hours after initiate', () => {
  test('a result is erased: 410, then 404 a day later', async () => {
    const { service, client, clock } = await timed();
    service.services.worker.start();
    const id = await client.upload(wav({ seconds: 6 }));
    const result = await client.result(id);
    clock.ms += 24 * HOUR - 1;
    assert.deepEqual(await client.result(id), result);
    clock.ms += 1;
    await problemOf(await client.prediction(id), 'gone');
    await service.sweep.run();
    assert.ok(!(await everything(service.dataDir)).includes(JSON.stringify(result.emotions)));
    await problemOf(await client.prediction(id), 'gone');
    clock.ms += 24 * HOUR;
    await service.sweep.run();
    await problemOf(await client.prediction(id), 'not_found');
  });

  test('an incomplete upload is erased and can no longer be completed', async () => {
    const { service, client, clock } = await timed();
    const upload = await client.send(randomBytes(1000), 2);
    clock.ms += ASYNCH_LIMITS.retentionSeconds * 1000;
    await problemOf(await client.complete(upload), 'gone');
    await service.sweep.run();
    assert.deepEqual(await filesOf(service.dataDir), []);
    assert.deepEqual(await service.stores.requests.parts(upload.request_id), []);
  });

  test('queued and processing recordings are erased, and their jobs are cancelled', async () => {
    const { service, client, clock } = await timed();
    const long = longWav(1_200);
    const ids = [await client.upload(long), await client.upload(long), await client.upload(long)];
    service.services.worker.start();
    const { requests } = service.stores;
    await eventually(async () => (await requests.countByState()).processing === 2);
    clock.ms += 24 * HOUR;
    await service.sweep.run();
    for (const id of ids) await problemOf(await client.prediction(id), 'gone');
    assert.deepEqual(await filesOf(service.dataDir), []);
    assert.deepEqual(await requests.countByState(), { expired: 3 });
  });
});

test('audio is erased on time even while no row can be', async () => {
  const clock = new Clock();
  const service = await testApp({}, { now: clock.now, kind: 'local', answerMs: SHORT_TIMEOUT_MS });
  const client = await AsynchClient.of(service);
  for (let i = 0; i < 2; i++) await client.send(randomBytes(1000), 1);
  clock.ms += 24 * HOUR;
  const other = new DatabaseSync(join(service.dataDir, DATABASE_FILE));
  other.exec('BEGIN IMMEDIATE');
  await assert.rejects(service.sweep.run(), /Several steps of the sweep failed/);
  assert.deepEqual(await filesOf(service.dataDir), []);
  other.close();
  await service.sweep.run();
  assert.deepEqual(await service.stores.requests.countByState(), { expired: 2 });
});

describe('after a crash', () => {
  test('the daily search erases parts that were never recorded, or whose request no longer exists', async () => {
    const { service, client, clock } = await timed();
    const upload = await client.send(randomBytes(1000), 1);
    const [kept] = await filesOf(service.dataDir);
    const folder = join(service.dataDir, 'uploads');
    const long = new Date(clock.ms - 2 * HOUR);
    for (const name of ['1-half.unfinished', '1-never-recorded']) {
      const path = join(folder, upload.request_id, name);
      await writeFile(path, 'sound');
      await utimes(path, long, long);
    }
    const young = join(folder, upload.request_id, '2-arriving.unfinished');
    await writeFile(young, 'sound');
    await utimes(young, new Date(clock.ms), new Date(clock.ms));
    await mkdir(join(folder, 'ffffffff-0000-0000-0000-000000000000'));
    await writeFile(join(folder, 'ffffffff-0000-0000-0000-000000000000', '1-x'), 'sound');

    const all = await filesOf(service.dataDir);
    await service.sweep.run();
    assert.deepEqual(await filesOf(service.dataDir), all, 'the sweep goes by the rows of requests');
    await service.sweep.eraseOrphans();
    assert.deepEqual(await filesOf(service.dataDir), [kept, young.slice(service.dataDir.length + 1)].sort());
    assert.equal((await client.complete(upload)).status, 200, 'the upload is unaffected');
  });

  test('the sweep erases the audio of a result that was just written', async () => {
    const { service, client } = await timed();
    const { requests } = service.stores;
    const id = await client.upload(wav({ seconds: 5 }));
    const claim = await requests.claim({ leaseMs: 60_000, running: [] });
    assert.ok(claim);
    await requests.finish(id, claim.lease, { result: '{}' });
    assert.equal((await filesOf(service.dataDir)).length, 1);
    await service.sweep.run();
    assert.deepEqual(await filesOf(service.dataDir), []);
    assert.equal(await (await client.prediction(id)).text(), '{}');
  });
});
