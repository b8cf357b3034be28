// What the sweep asks S3 for: it goes by the requests that are over, not by everything that is stored.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ASYNCH_PATHS, IDEMPOTENCY_KEY_HEADER } from '@undertone/contract';
import { sharedClassifier, testApp } from '@undertone/testing/app';
import { AsynchClient, type Upload } from '@undertone/testing/asynch-client';
import { S3_CREDENTIALS, S3Server } from '@undertone/testing/s3-server';
import { createLogger } from '../../src/index.ts';
import { Sweep, takeLocalTurns } from '../../src/recordings/sweep.ts';
import { LATE_UPLOAD_MS } from '../../src/stores/blobs.ts';
import { S3BlobStore } from '../../src/stores/s3/blobs.ts';
import { Clock } from './support/clock.ts';

Object.assign(process.env, S3_CREDENTIALS);
const HOUR = 3_600_000;
const REQUESTS = 1_000;

const s3 = await S3Server.shared();
after(() => s3.remove());
const bucket = await s3.newBucket();

/** Prefixes that were listed since the last call. */
const listed: string[] = [];
const proxy = createServer((client) => {
  const store = connect(Number(new URL(s3.endpoint).port), '127.0.0.1');
  client.on('data', (chunk) => {
    for (const [, query = ''] of chunk.toString('latin1').matchAll(/^GET \S*\?(\S*list-type=2\S*) /gm)) {
      listed.push(new URLSearchParams(query).get('prefix') ?? '');
    }
    store.write(chunk);
  });
  store.pipe(client);
  for (const socket of [client, store]) socket.on('error', () => undefined);
  client.on('close', () => store.destroy());
});
await once(proxy.listen(0, '127.0.0.1'), 'listening');
after(() => proxy.close());

const clock = new Clock();
await sharedClassifier();
const service = await testApp(
  {
    SERVICE_S3_BUCKET: bucket,
    SERVICE_S3_ENDPOINT: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
  },
  { now: clock.now },
);
const { requests, blobs } = service.stores;

async function newUpload(): Promise<string> {
  const id = randomUUID();
  const request = { id, owner: 'o', uploadId: 'u', model: '4emotions', intervalSeconds: 5, partCount: 1 };
  await requests.create(request);
  await put(id);
  return id;
}
/** As a client does through an upload URL. */
async function put(id: string): Promise<void> {
  const bytes = (async function* () {
    yield Buffer.from('sound');
  })();
  await blobs.write(id, '1', bytes);
}
async function listsOf(work: () => Promise<unknown>): Promise<string[]> {
  listed.length = 0;
  await work();
  return listed.map((prefix) => prefix.replace(/^undertone\/(.*)\/$/, '$1')).sort();
}
const left = async () => (await blobs.groups()).sort();

describe('the sweep of S3', () => {
  test('erases a part that arrives after its request was deleted, once the upload URLs have ended', async () => {
    const id = await newUpload();
    await requests.delete(id, 'o');
    assert.deepEqual(await listsOf(() => service.sweep.run()), [id]);
    await put(id);
    assert.deepEqual(await listsOf(() => service.sweep.run()), [], 'it is not listed every minute');
    clock.ms += LATE_UPLOAD_MS;
    assert.deepEqual(await listsOf(() => service.sweep.run()), [id]);
    assert.deepEqual(await left(), []);
    assert.deepEqual(await listsOf(() => service.sweep.run()), []);
  });

  test('counts only uploads whose URLs are still valid', async () => {
    const client = await AsynchClient.of(service);
    const path = `${ASYNCH_PATHS.initiate}?file_name=a.wav&part_count=2`;
    const initiate = async (key: string) => {
      const headers = { [IDEMPOTENCY_KEY_HEADER]: key };
      return ((await (await client.call(path, { method: 'POST', headers })).json()) as Upload).request_id;
    };
    const [one, two] = [await initiate('one'), await initiate('two')];
    clock.ms += LATE_UPLOAD_MS;
    const young = await newUpload();
    assert.deepEqual(await listsOf(() => service.sweep.run()), [young]);
    assert.equal((await service.stores.ledger.use()).get('o')?.storage, 5);
    assert.equal(await initiate('one'), one, 'which has new URLs now');
    assert.equal((await client.call(`${ASYNCH_PATHS.upload}/${two}`)).status, 200, 'this one too');
    assert.deepEqual(await listsOf(() => service.sweep.run()), [one, two, young].sort());
    await requests.delete(young, 'o');
    for (const id of [one, two]) assert.equal((await client.delete(id)).status, 204);
    await service.sweep.run();
  });

  test('finds orphans of any kind once a day, page by page, with a pause, in one process', async () => {
    const pages = new S3BlobStore({
      bucket,
      prefix: 'undertone/',
      region: 'us-east-1',
      endpoint: s3.endpoint,
      publicEndpoint: '',
      addressing: 'auto',
      pageSize: 2,
    });
    after(() => pages.close());
    const living = await newUpload();
    for (let i = 0; i < 5; i++) await put(randomUUID());
    const log: { msg?: string; groups?: number; erased?: number }[] = [];
    const takeTurn = takeLocalTurns();
    const turns: string[] = [];
    const options = {
      requests,
      blobs: pages,
      logger: createLogger('info', { write: (line: string) => log.push(JSON.parse(line)) }),
      storageLimit: 0,
      orphanAfterMs: HOUR,
      eraseOldCopies: undefined,
      takeTurn: async (task: string, everyMs: number) => {
        const ours = await takeTurn(task, everyMs);
        turns.push(`${task} every ${Math.ceil(everyMs / 60_000)} minutes: ${ours}`);
        return ours;
      },
      pagePauseMs: 30,
    };
    const processes = [new Sweep(options), new Sweep(options)];
    const start = performance.now();
    for (const process of processes) process.start();
    while (!log.some(({ msg }) => msg?.includes('orphan'))) await sleep(10);
    assert.ok(performance.now() - start >= 60, 'it pauses between its three pages');
    for (const process of processes) await process.stop();
    assert.deepEqual(await left(), [living]);
    assert.deepEqual(
      log.filter(({ msg }) => msg?.includes('orphan')).map(({ groups, erased }) => ({ groups, erased })),
      [{ groups: 6, erased: 5 }],
    );
    assert.deepEqual(turns.sort(), [
      'orphans every 1440 minutes: false',
      'orphans every 1440 minutes: true',
      'sweep every 1 minutes: false',
      'sweep every 1 minutes: true',
    ]);
  });

  // The last one: it leaves its blobs behind.
  test(`lists the blobs of 3 requests that have expired, not of ${REQUESTS}`, async () => {
    clock.ms += 24 * HOUR;
    await service.sweep.run(); // what the tests before have left
    const expiring = [await newUpload(), await newUpload(), await newUpload()];
    clock.ms += 23 * HOUR;
    const living: string[] = [];
    const create = async () => {
      while (living.length < REQUESTS - expiring.length) {
        const at = living.push('') - 1;
        living[at] = await newUpload();
      }
    };
    await Promise.all(Array.from({ length: 16 }, create));
    clock.ms += LATE_UPLOAD_MS;
    assert.deepEqual(await listsOf(() => service.sweep.run()), expiring.toSorted());
    assert.deepEqual(await left(), living.toSorted());
    assert.deepEqual(await listsOf(() => service.sweep.run()), [], 'their URLs have ended: nothing to do');
  });
});
