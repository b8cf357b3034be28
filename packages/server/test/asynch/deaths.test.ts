import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { PatientDatabase } from '../../src/asynch/stores/patient-database.ts';
import { SqliteJobQueue } from '../../src/asynch/stores/sqlite-job-queue.ts';
import { openDatabase } from '../../src/index.ts';
import { sharedClassifier, testApp } from '../support/app.ts';
import { wav } from '../support/wav.ts';
import { AsynchClient, filesOf } from './support/client.ts';
import { problemOf } from './support/problem.ts';
import { Clock } from './support/stores.ts';

/** A service with one queued recording, and the queue as another process has it. */
async function queued() {
  const clock = new Clock();
  const service = await testApp({}, { now: clock.now });
  const client = await AsynchClient.of(service);
  const id = await client.upload(wav({ seconds: 12 }));
  const database = openDatabase(service.dataDir);
  const elsewhere = new SqliteJobQueue(new PatientDatabase(database), clock.now);
  /** Takes the job in another process, which then dies. */
  async function die(): Promise<void> {
    const job = await elsewhere.claim(10_000);
    assert.equal(job?.requestId, id);
    assert.equal(await service.asynch.stores.requests.begin(id, job.lease), true);
    clock.ms += 10_001;
  }
  return { service, client, id, clock, elsewhere, die, close: () => database.close() };
}

// Here, so that its threads belong to the file and not to the first test.
await sharedClassifier();

describe('a worker that dies', () => {
  test('gives its request back to the queue, and the next one completes it', async () => {
    const { service, client, id, die, close } = await queued();
    await die();
    service.asynch.start();
    assert.equal((await client.result(id)).emotions.length, 3);
    while ((await filesOf(service.dataDir)).length > 0) await sleep(10);
    close();
  });

  test('three times over one request makes it failed with the reason, and its audio is gone', async () => {
    const { service, client, id, die, elsewhere, close } = await queued();
    const { requests, queue } = service.asynch.stores;
    for (let deaths = 1; deaths <= 3; deaths++) {
      await die();
      const [dead] = await queue.releaseDead();
      assert.ok(dead);
      await requests.giveBack(id, dead.lease);
      const { status } = (await (await client.prediction(id)).json()) as { status: string };
      assert.equal(status, 'queued');
    }
    assert.equal(await elsewhere.waiting(), 1);
    service.asynch.start();
    const problem = await problemOf(await client.settled(id), 'processing_failed');
    assert.match(problem.detail, /3 times/);
    while ((await filesOf(service.dataDir)).length > 0) await sleep(10);
    assert.equal(await elsewhere.waiting(), 0);
    close();
  });

  test('and comes back too late cannot put its result in the place of the right one', async () => {
    const { service, client, id, clock, elsewhere, close } = await queued();
    const { requests } = service.asynch.stores;
    const late = await elsewhere.claim(10_000);
    assert.ok(late);
    await requests.begin(id, late.lease);
    clock.ms += 10_001;
    service.asynch.start();
    const result = await client.result(id);
    assert.equal(await requests.finish(id, late.lease, { result: '"late"' }), false);
    assert.equal(await requests.giveBack(id, late.lease), false);
    assert.equal(await elsewhere.renew(late, 10_000), false);
    assert.deepEqual(await client.result(id), result);
    close();
  });
});
