import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, afterEach, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '@undertone/testing/eventually';
import { MUST_MOUNT, mountSmallDisk } from '@undertone/testing/small-disk';
import { LONG_TIMEOUT_MS, SHORT_TIMEOUT_MS } from '@undertone/testing/timeouts';
import type { SqlStores } from '../../src/stores/contracts.ts';
import { StoreUnavailableError } from '../../src/stores/errors.ts';
import { openSqliteStores } from '../../src/stores/sqlite/database.ts';
import { DATABASE_FILE } from '../../src/stores/sqlite/open.ts';
import { openThreadedStores } from '../../src/stores/sqlite/threaded-stores.ts';
import { ThreadControls, tempDir } from './support/factories.ts';

const LIMITS = { maxRequestBytes: 100, maxOwnerBytes: 100 };

function isUnavailable(words: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof StoreUnavailableError && words.test(error.reason);
}

async function uploading({ requests }: SqlStores, id: string = randomUUID()): Promise<string> {
  await requests.create({ id, owner: 'o', uploadId: 'u', model: 'm', intervalSeconds: 5, partCount: 1 });
  return id;
}

async function queued(stores: SqlStores): Promise<string> {
  const id = await uploading(stores);
  await stores.requests.addPart(id, { number: 1, blob: '1-b', etag: 'e', bytes: 1 }, LIMITS);
  await stores.requests.complete(id, new Map([[1, 'e']]));
  return id;
}

for (const [name, open] of [
  ['on the calling thread', (dataDir: string) => openSqliteStores({ dataDir })],
  ['on its thread', (dataDir: string) => openThreadedStores({ dataDir, answerMs: SHORT_TIMEOUT_MS })],
] as const) {
  describe(`the database ${name}`, () => {
    test('while another program has it locked, answers reads, rejects writes, then recovers', async () => {
      const dataDir = await tempDir();
      const stores = await open(dataDir);
      after(() => stores.close());
      const { requests, keys } = stores;
      const id = await queued(stores);
      const { key } = await keys.create('laptop');
      const other = new DatabaseSync(join(dataDir, DATABASE_FILE));
      other.exec('BEGIN IMMEDIATE');

      const start = performance.now();
      const writes = [
        uploading(stores),
        requests.claim({ leaseMs: 1_000, running: [] }),
        requests.checkWritable(),
        requests.delete(id, 'o'),
        requests.expire(),
        keys.recordLastUsed(new Map([['x', 1]])),
        keys.create('phone'),
      ].map((write) => assert.rejects(write, isUnavailable(/locked by another program/)));
      assert.equal((await requests.find(id))?.state, 'queued');
      assert.deepEqual(await requests.countByState(), { queued: 1 });
      assert.equal((await keys.lookUp(key)).state, 'active');
      await Promise.all(writes);
      assert.ok(
        performance.now() - start < 3 * SHORT_TIMEOUT_MS,
        'no call waits for the lock to be released',
      );
      const started = await open(dataDir);
      assert.equal((await started.requests.find(id))?.state, 'queued', 'another server can start');
      await started.close();

      other.exec('ROLLBACK');
      other.close();
      assert.equal((await requests.claim({ leaseMs: 1_000, running: [] }))?.request.id, id);
      await requests.checkWritable();
    });

    test('while it is locked briefly, waits', async () => {
      const dataDir = await tempDir();
      const stores = await open(dataDir);
      after(() => stores.close());
      const other = new DatabaseSync(join(dataDir, DATABASE_FILE));
      other.exec('BEGIN IMMEDIATE');
      const created = uploading(stores);
      await sleep(50);
      other.exec('ROLLBACK');
      other.close();
      assert.equal((await stores.requests.find(await created))?.state, 'uploading');
    });

    test('on a full disk, answers reads, rejects writes, then recovers', async () => {
      const dataDir = await tempDir();
      const disk = mountSmallDisk(dataDir);
      assert.ok(disk, MUST_MOUNT);
      const stores = await open(dataDir);
      try {
        const { requests, keys } = stores;
        const id = await queued(stores);
        const { key } = await keys.create('laptop');
        disk.fill();
        for (let times = 0; times < 3; times++) {
          await assert.rejects(uploading(stores, 'new'), isUnavailable(/disk is full/));
          await assert.rejects(requests.checkWritable(), isUnavailable(/disk is full/));
          await assert.rejects(
            requests.claim({ leaseMs: 1_000, running: [] }),
            isUnavailable(/disk is full/),
          );
          await assert.rejects(keys.revoke('laptop'), isUnavailable(/disk is full/));
          assert.equal((await requests.find(id))?.state, 'queued');
          assert.equal((await keys.lookUp(key)).state, 'active');
        }
        disk.empty();
        assert.equal(await requests.find('new'), null);
        await uploading(stores, 'new');
        assert.equal((await requests.claim({ leaseMs: 1_000, running: [] }))?.failedAttempts, 0);
      } finally {
        await stores.close();
        disk.unmount();
      }
    });
  });
}

test('a bug is not reported as an unavailable store, and keeps its name and message', async () => {
  for (const open of [openSqliteStores, openThreadedStores]) {
    const stores = await open({ dataDir: await tempDir(), answerMs: LONG_TIMEOUT_MS });
    after(() => stores.close());
    await uploading(stores, 'twice');
    await assert.rejects(uploading(stores, 'twice'), { name: 'Error', message: /UNIQUE constraint failed/ });
    await assert.rejects(stores.keys.lookUp(null as unknown as string), { name: 'TypeError' });
    // In the middle of a transaction, which is rolled back: the next one works.
    const part = { number: 1, blob: 'b', etag: 'e', bytes: 1 };
    const noBlob = { ...part, blob: null as unknown as string };
    await assert.rejects(stores.requests.addPart('twice', noBlob, LIMITS), /NOT NULL constraint failed/);
    assert.deepEqual(await stores.requests.addPart('twice', part, LIMITS), { added: true, replaced: null });
  }
});

test('a read-only folder is rejected at start with a clear reason', async () => {
  const dataDir = await tempDir();
  const disk = mountSmallDisk(dataDir);
  assert.ok(disk, MUST_MOUNT);
  try {
    disk.protect(true);
    for (const open of [openSqliteStores, openThreadedStores]) {
      await assert.rejects(open({ dataDir }), isUnavailable(/cannot be written to/));
    }
  } finally {
    disk.unmount();
  }
});

test('by default, a write to a locked database is rejected within a second', async () => {
  for (const open of [openSqliteStores, openThreadedStores]) {
    const dataDir = await tempDir();
    const stores = await open({ dataDir });
    after(() => stores.close());
    const other = new DatabaseSync(join(dataDir, DATABASE_FILE));
    other.exec('BEGIN IMMEDIATE');
    const took: number[] = [];
    for (let times = 0; times < 3; times++) {
      const start = performance.now();
      await assert.rejects(stores.requests.checkWritable(), StoreUnavailableError);
      took.push(performance.now() - start);
    }
    other.close();
    // The fastest of three: the machine itself may stall for a moment.
    assert.ok(Math.min(...took) < 1_000, `refused after ${took} ms`);
  }
});

describe('the store thread', () => {
  let controls: ThreadControls;
  let dataDir: string;
  let stores: SqlStores;
  let errors: Error[];

  beforeEach(async () => {
    controls = new ThreadControls();
    dataDir = await tempDir();
    errors = [];
    const { startThread } = controls;
    stores = await openThreadedStores({
      dataDir,
      answerMs: SHORT_TIMEOUT_MS,
      startThread,
      onThreadError: (error) => errors.push(error),
    });
  });
  afterEach(() => stores.close());

  test('that is killed during calls fails only those calls, and is replaced', async () => {
    const id = await queued(stores);
    controls.hang();
    const calls = [stores.requests.checkWritable(), stores.requests.find(id), stores.keys.isEmpty()];
    const rejected = calls.map((call) => assert.rejects(call, isUnavailable(/database was closed/)));
    await controls.threads[0]?.terminate();
    await Promise.all(rejected);
    controls.resume();
    await assert.rejects(stores.requests.find(id), isUnavailable(/being reopened/));
    assert.equal((await eventually(() => stores.requests.find(id)))?.state, 'queued');
    assert.equal(controls.threads.length, 2);
    assert.equal(errors.length, 1);
    for (let times = 0; times < 3; times++) {
      await controls.threads.at(-1)?.terminate();
      await eventually(() => stores.requests.checkWritable());
    }
    assert.equal(controls.threads.length, 5);
  });

  test('that cannot reopen the database retries until it can', async () => {
    const raw = new DatabaseSync(join(dataDir, DATABASE_FILE));
    const { user_version } = raw.prepare('PRAGMA user_version').get() as { user_version: number };
    raw.exec('PRAGMA user_version = 999');
    await controls.threads[0]?.terminate();
    while (errors.length < 3) await sleep(5);
    assert.match(errors.at(-1)?.message ?? '', /newer version/);
    await assert.rejects(stores.requests.countByState(), StoreUnavailableError);
    raw.exec(`PRAGMA user_version = ${user_version}`);
    raw.close();
    assert.deepEqual(await eventually(() => stores.requests.countByState()), {});
  });

  test('whose disk hangs times out, and later skips every call that was reported as failed', async () => {
    const id = await queued(stores);
    controls.hang();
    const start = performance.now();
    const stuck = stores.requests.claim({ leaseMs: 60_000, running: [] });
    const waiting = [uploading(stores, 'refused'), stores.requests.find(id), stores.requests.delete(id, 'o')];
    const slow = isUnavailable(/answers too slowly/);
    await Promise.all([stuck, ...waiting].map((call) => assert.rejects(call, slow)));
    assert.ok(performance.now() - start < 3 * SHORT_TIMEOUT_MS, 'no call waits for the disk');
    controls.resume();

    assert.equal((await eventually(() => stores.requests.find(id)))?.owner, 'o', 'it was not deleted');
    assert.equal(await stores.requests.find('refused'), null);
    // The claim itself had started and was executed. It was requeued, because no worker knew of its lease.
    const claim = await stores.requests.claim({ leaseMs: 60_000, running: [] });
    assert.deepEqual([claim?.request.id, claim?.failedAttempts], [id, 0]);
    assert.equal(controls.threads.length, 1);
  });

  test('that is slow fails what a caller waits for, not the sweep', async () => {
    const id = await queued(stores);
    controls.hang();
    const sweep = stores.requests.expire();
    await assert.rejects(stores.requests.find(id), isUnavailable(/answers too slowly/));
    controls.resume();
    await sweep;
  });

  test('that answers late, whatever the call, does no harm', async () => {
    const id = await queued(stores);
    const slow = isUnavailable(/answers too slowly/);
    for (const call of [
      () => stores.webhooks.claim({ limit: 1, holdMs: 1 }),
      () => stores.requests.find(id),
      () => stores.requests.claim({ leaseMs: 60_000, running: [] }),
      () => stores.keys.create('late'),
    ]) {
      controls.hang();
      await assert.rejects(call(), slow);
      controls.resume();
      // The late answer has arrived by then; an uncaught error would have ended the process.
      await eventually(() => stores.requests.checkWritable());
    }
    assert.equal((await stores.requests.claim({ leaseMs: 60_000, running: [] }))?.failedAttempts, 0);
    assert.equal(controls.threads.length, 1);
  });

  test('ends when the stores are closed, and leaves no write-ahead log', async () => {
    await queued(stores);
    await stores.close();
    await stores.close();
    assert.deepEqual(readdirSync(dataDir), [DATABASE_FILE]);
    await assert.rejects(stores.requests.countByState(), StoreUnavailableError);
    assert.deepEqual(errors, []);
  });

  test('rejects a method that does not exist', async () => {
    const requests = stores.requests as unknown as { forget(): Promise<void> };
    await assert.rejects(requests.forget(), { name: 'TypeError', message: /requests has no method forget/ });
  });

  test('can be awaited without being mistaken for a promise', async () => {
    assert.equal(await stores.requests, stores.requests);
  });
});
