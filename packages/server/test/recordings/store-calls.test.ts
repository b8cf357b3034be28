// Each call to the request store is a round trip to a thread or a database, so an upload must not make more than it needs.
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { tempDir, testApp, testEmbedded } from '@undertone/testing/app';
import { AsynchClient, putPart } from '@undertone/testing/asynch-client';
import { problemOf } from '@undertone/testing/problem';
import type { RequestStore } from '../../src/stores/contracts.ts';
import { openSqliteStores } from '../../src/stores/sqlite/database.ts';

type Method = (...args: unknown[]) => unknown;

const service = await testApp();
const client = await AsynchClient.of(service);
const calls: string[] = [];
const insideCall = new AsyncLocalStorage<boolean>();
await recordCalls(service.stores.requests);

/** Wraps every method of the real store. What a method calls itself is not counted. */
async function recordCalls(requests: RequestStore): Promise<void> {
  const methods = requests as unknown as Record<string, Method>;
  // The store of the app may be on another thread: this one has the same methods.
  const stores = await openSqliteStores({ dataDir: await tempDir() });
  await stores.close();
  for (const name of Object.keys(stores.requests)) {
    const method = methods[name] as Method;
    methods[name] = (...args) => {
      if (!insideCall.getStore()) calls.push(name);
      return insideCall.run(true, () => method.apply(requests, args));
    };
  }
}

async function callsOf(work: () => Promise<unknown>): Promise<string[]> {
  calls.length = 0;
  await work();
  return [...calls];
}

describe('store calls', () => {
  testEmbedded('a part makes two, also when it replaces another', async () => {
    const upload = await client.send(randomBytes(100), 2);
    const { url } = upload.presigned_urls[0] ?? assert.fail();
    const made = await callsOf(async () => {
      assert.equal((await putPart(url, randomBytes(10))).status, 200);
    });
    assert.deepEqual(made, ['findWithUsage', 'addPart']);
  });

  testEmbedded('a refused part makes at most two', async () => {
    const upload = await client.send(randomBytes(100), 1);
    const { url } = upload.presigned_urls[0] ?? assert.fail();
    const empty = await callsOf(async () => problemOf(await putPart(url, Buffer.alloc(0)), 'bad_request'));
    assert.deepEqual(empty, ['findWithUsage']);
    assert.equal((await client.complete(upload)).status, 200);
    const late = await callsOf(async () => problemOf(await putPart(url, randomBytes(10)), 'conflict'));
    assert.deepEqual(late, ['findWithUsage']);
  });

  testEmbedded('a part whose request is completed or deleted while it arrives makes two', async () => {
    for (const [end, code] of [
      ['complete', 'conflict'],
      ['delete', 'not_found'],
    ] as const) {
      const upload = await client.send(randomBytes(100), 1);
      const { url } = upload.presigned_urls[0] ?? assert.fail();
      const { blobs } = service.stores;
      const { write } = blobs;
      let before: string[] = [];
      blobs.write = async (...args) => {
        const written = await write.apply(blobs, args);
        before = [...calls];
        await (end === 'delete' ? client.delete(upload.request_id) : client.complete(upload));
        calls.length = 0;
        return written;
      };
      const after = await callsOf(async () => problemOf(await putPart(url, randomBytes(10)), code));
      blobs.write = write;
      assert.deepEqual([before, after], [['findWithUsage'], ['addPart']]);
    }
  });

  test('complete makes two; for a request that is already queued, one', async () => {
    const upload = await client.send(randomBytes(100), 3);
    const complete = async () => assert.equal((await client.complete(upload)).status, 200);
    assert.deepEqual(await callsOf(complete), ['find', 'complete']);
    assert.deepEqual(await callsOf(complete), ['find']);
  });

  test('a refused complete makes at most two', async () => {
    const upload = await client.send(randomBytes(100), 2);
    const refused = (body: Parameters<typeof client.complete>[0]) =>
      callsOf(async () => problemOf(await client.complete(body), 'bad_request'));
    assert.deepEqual(await refused({ ...upload, parts: upload.parts.slice(1) }), ['find', 'complete']);
    const twice = [{ PartNumber: 1, ETag: '"other"' }, ...upload.parts];
    assert.deepEqual(await refused({ ...upload, parts: twice }), ['find', 'complete']);
  });
});
