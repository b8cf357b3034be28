import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, describe, test } from 'node:test';
import { PatientDatabase } from '../../src/asynch/stores/patient-database.ts';
import { SqliteRequestStore } from '../../src/asynch/stores/sqlite-request-store.ts';
import { DATABASE_FILE, openDatabase } from '../../src/index.ts';
import { asProblem } from '../../src/problems.ts';
import { postFile, sharedClassifier, type TestApp, tempDir, testApp } from '../support/app.ts';
import { wav } from '../support/wav.ts';
import { AsynchClient, filesOf, putPart } from './support/client.ts';
import { type Disk, smallDisk } from './support/disk.ts';
import { problemOf } from './support/problem.ts';

// Here, so that its threads belong to the file and not to the first test.
await sharedClassifier();

async function onSmallDisk(): Promise<{ service: TestApp; client: AsynchClient; disk: Disk }> {
  const service = await testApp();
  const folder = join(service.dataDir, 'uploads');
  await mkdir(folder, { recursive: true });
  const disk = await smallDisk(folder, service.asynch.stores.blobs);
  return { service, disk, client: await AsynchClient.of(service) };
}

const file = wav({ seconds: 6, rate: 16_000 });

describe('a disk that is full', () => {
  test('refuses parts with 503 and words, keeps what was acknowledged, and goes on when there is room', async () => {
    const { service, client, disk } = await onSmallDisk();
    try {
      const upload = await client.send(file, 2);
      const begun = await (await client.initiate({ part_count: 2 })).json();
      const [first, second] = (begun as typeof upload).presigned_urls.map(({ url }) => url) as [
        string,
        string,
      ];
      assert.equal((await putPart(first, file.subarray(0, 50_000))).status, 200);
      const stored = await filesOf(service.dataDir);
      await disk.fill();

      for (let times = 0; times < 3; times++) {
        const refused = await putPart(second, file.subarray(50_000));
        assert.ok(Number(refused.headers.get('retry-after')) > 0);
        assert.match((await problemOf(refused, 'overloaded')).detail, /disk is full/);
      }
      assert.deepEqual(
        (await filesOf(service.dataDir)).filter((path) => !path.endsWith('ballast')),
        stored,
        'no half of a part is left',
      );
      assert.equal((await postFile(service, wav())).statusCode, 200, 'the discrete interface goes on');
      service.asynch.start();
      assert.equal((await client.complete(upload)).status, 200);
      assert.equal(
        (await client.result(upload.request_id)).emotions.length,
        2,
        'what was there is processed',
      );

      await disk.empty();
      const parts = [];
      for (const [i, url] of [first, second].entries()) {
        const half = i === 0 ? file.subarray(0, 50_000) : file.subarray(50_000);
        const answer = await putPart(url, half);
        assert.equal(answer.status, 200);
        parts.push({ PartNumber: i + 1, ETag: answer.headers.get('etag') ?? '' });
      }
      assert.equal((await client.complete({ ...(begun as typeof upload), parts })).status, 200);
      await client.result((begun as typeof upload).request_id);
    } finally {
      await disk.release();
    }
  });
});

describe('a folder that became read-only', () => {
  test('refuses parts with 503 and words, and goes on when it can be written to again', async () => {
    const { client, disk } = await onSmallDisk();
    try {
      const begun = (await (await client.initiate({})).json()) as Awaited<ReturnType<AsynchClient['send']>>;
      const url = begun.presigned_urls[0]?.url ?? '';
      await disk.protect();
      assert.match((await problemOf(await putPart(url, file), 'overloaded')).detail, /cannot be written to/);
      await disk.unprotect();
      assert.equal((await putPart(url, file)).status, 200);
    } finally {
      await disk.release();
    }
  });
});

test('a database that cannot grow is told apart from a mistake of ours, and goes on when it can', async () => {
  const database = openDatabase(await tempDir());
  after(() => database.close());
  const store = new SqliteRequestStore(new PatientDatabase(database));
  const create = () =>
    store.create({
      id: randomUUID(),
      owner: 'x'.repeat(5_000),
      uploadId: 'u',
      model: '4emotions',
      intervalSeconds: 5,
      partCount: 1,
      createdAt: 0,
      expiresAt: 1,
    });
  const { page_count } = database.prepare('PRAGMA page_count').get() as { page_count: number };
  database.exec(`PRAGMA max_page_count = ${page_count}`);
  await assert.rejects(create, (error) => {
    const problem = asProblem(error);
    assert.equal(problem.code, 'overloaded');
    assert.match(problem.message, /disk is full/);
    return true;
  });
  database.exec(`PRAGMA max_page_count = ${page_count + 100}`);
  await create();
});

describe('a database that is locked', () => {
  /** Another program that holds the write lock. */
  function lock(service: TestApp): DatabaseSync {
    const other = new DatabaseSync(join(service.dataDir, DATABASE_FILE));
    after(() => other.close());
    other.exec('BEGIN IMMEDIATE');
    return other;
  }

  test('for a moment only makes calls wait', async () => {
    const service = await testApp();
    const client = await AsynchClient.of(service);
    const other = lock(service);
    setTimeout(() => other.exec('ROLLBACK'), 300);
    const upload = await client.send(randomBytes(100), 1);
    assert.equal((await client.complete(upload)).status, 200);
  });

  test('for long gets 503 and words, holds nobody else up, loses nothing and fails no job', async () => {
    const service = await testApp();
    const client = await AsynchClient.of(service);
    const upload = await client.send(file, 1);
    const id = await client.upload(wav({ seconds: 30, rate: 16_000 }));
    service.asynch.start();
    const { requests } = service.asynch.stores;
    while ((await requests.find(id))?.state !== 'processing') await new Promise(setImmediate);
    const other = lock(service);

    const initiated = client.initiate({});
    const part = putPart(upload.presigned_urls[0]?.url ?? '', randomBytes(100));
    let slowest = 0;
    for (let times = 0; times < 5; times++) {
      const start = performance.now();
      assert.equal((await postFile(service, wav())).statusCode, 200);
      assert.equal((await client.prediction(upload.request_id)).status, 202);
      slowest = Math.max(slowest, performance.now() - start);
    }
    assert.ok(slowest < 2_000, `${slowest} ms`);
    for (const answer of [initiated, part]) {
      assert.match((await problemOf(await answer, 'overloaded')).detail, /locked/);
    }
    // By now the recording has long been heard; only its result could not be written.
    assert.equal((await client.prediction(id)).status, 202);
    other.exec('ROLLBACK');
    assert.equal((await client.result(id)).emotions.length, 6);
    assert.equal(
      (await client.complete(upload)).status,
      200,
      'the part that was acknowledged is still there',
    );
    await client.result(upload.request_id);
  });
});
