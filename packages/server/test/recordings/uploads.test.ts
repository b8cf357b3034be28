import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_KEY_HEADER, ASYNCH_LIMITS, ASYNCH_PATHS, type InitiateResult, PATHS } from '@undertone/contract';
import { InitiateResult as InitiateResultSchema } from '@undertone/contract/schemas';
import { describeEmbedded, testApp, testEmbedded } from '@undertone/testing/app';
import { AsynchClient, filesOf, putPart } from '@undertone/testing/asynch-client';
import { problemOf } from '@undertone/testing/problem';
import { head, RawClient } from '@undertone/testing/socket';
import Value from 'typebox/value';
import { Clock } from './support/clock.ts';

const service = await testApp();
const client = await AsynchClient.of(service);
/** For records without their bytes. */
const NO_LIMITS = { maxRequestBytes: Number.MAX_SAFE_INTEGER, maxOwnerBytes: Number.MAX_SAFE_INTEGER };
const md5 = (bytes: Uint8Array) => createHash('md5').update(bytes).digest();

async function begun(query: Record<string, string | number> = {}): Promise<InitiateResult & { url: string }> {
  const result = (await (await client.initiate(query)).json()) as InitiateResult;
  return { ...result, url: result.presigned_urls[0]?.url ?? '' };
}

/** The URL with some query parameters changed. */
function altered(url: string, change: (url: URL) => void): string {
  const copy = new URL(url);
  change(copy);
  return copy.href;
}

describe('initiate', () => {
  for (const method of ['GET', 'POST']) {
    test(`by ${method} returns a UUID and one URL per part`, async () => {
      const response = await client.initiate({ part_count: 3 }, method);
      assert.equal(response.status, 200);
      assert.equal(response.headers.get('cache-control'), 'no-store');
      const result = (await response.json()) as InitiateResult;
      assert.ok(Value.Check(InitiateResultSchema, result));
      assert.match(result.request_id, /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/);
      assert.deepEqual(
        result.presigned_urls.map(({ part_number }) => part_number),
        [1, 2, 3],
      );
      assert.equal(new Set(result.presigned_urls.map(({ url }) => url)).size, 3);
      const hours = (Date.parse(result.expires_at) - Date.now()) / 3_600_000;
      assert.ok(Math.abs(hours - 24) < 0.1);
    });
  }

  test('by HEAD creates nothing', async () => {
    const before = await service.stores.requests.countByState();
    assert.equal((await client.initiate({}, 'HEAD')).status, 405);
    assert.deepEqual(await service.stores.requests.countByState(), before);
  });

  test('accepts up to 10,000 parts', async () => {
    const { presigned_urls } = await begun({ part_count: ASYNCH_LIMITS.maxParts });
    assert.equal(presigned_urls.length, 10_000);
    assert.equal(presigned_urls.at(-1)?.part_number, 10_000);
  });

  test('explains an invalid query', async () => {
    for (const query of [
      { part_count: 0 },
      { part_count: 10_001 },
      { part_count: 'many' },
      { part_count: 1.5 },
      { interval: 0 },
      { interval: 61 },
      { interval: 2.5 },
      { file_name: '' },
      { file_name: 'x'.repeat(256) },
    ]) {
      const problem = await problemOf(await client.initiate(query), 'bad_request');
      assert.match(problem.detail, new RegExp(Object.keys(query)[0] ?? ''));
    }
    await problemOf(await client.initiate({ model: '6emotions' }), 'unknown_model');
    await problemOf(await client.call(ASYNCH_PATHS.initiate, { method: 'POST' }), 'bad_request');
  });

  testEmbedded('builds URLs on the public URL, or on the address of the request', async () => {
    assert.ok((await begun()).url.startsWith(`${client.base}/`));
    const behind = await testApp({ SERVICE_PUBLIC_URL: 'https://voice.example.org/api' });
    const result = (await (await (await AsynchClient.of(behind)).initiate({})).json()) as InitiateResult;
    assert.ok(result.presigned_urls[0]?.url.startsWith(`https://voice.example.org/api${PATHS.asynch}/`));
  });

  testEmbedded('path tricks in file_name have no effect', async () => {
    for (const file_name of ['../../etc/passwd', '/tmp/x', '..', 'a\0b', 'C:\\x', '%2e%2e%2f']) {
      const { request_id, url } = await begun({ file_name });
      assert.equal((await putPart(url, Buffer.from('sound'))).status, 200);
      const files = await filesOf(service.dataDir);
      assert.ok(
        files.every((file) => /^uploads\/[0-9a-f-]{36}\/\d+-[0-9a-f-]{36}$/.test(file)),
        files.join(),
      );
      await client.delete(request_id);
    }
  });
});

describeEmbedded('a part', () => {
  test('needs no key and gets its MD5 in quotes', async () => {
    const { url } = await begun();
    const bytes = randomBytes(200_000);
    const response = await putPart(url, bytes);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('etag'), `"${md5(bytes).toString('hex')}"`);
  });

  test('may have no length, and any content type', async () => {
    const { url } = await begun();
    const bytes = randomBytes(300_000);
    const stream = new Blob([bytes]).stream();
    const response = await putPart(url, stream, { 'content-type': 'application/json' });
    assert.equal(response.headers.get('etag'), `"${md5(bytes).toString('hex')}"`);
  });

  test('uploaded again replaces the first', async () => {
    const { url, request_id } = await begun();
    await putPart(url, Buffer.from('first'));
    const etag = (await putPart(url, Buffer.from('second'))).headers.get('etag');
    assert.equal(etag, `"${md5(Buffer.from('second')).toString('hex')}"`);
    const [part, ...more] = await service.stores.requests.parts(request_id);
    assert.equal(more.length, 0);
    assert.deepEqual(
      (await filesOf(service.dataDir)).filter((file) => file.includes(request_id)),
      [`uploads/${request_id}/${part?.blob}`],
    );
  });

  test('is checked against its Content-MD5', async () => {
    const { url, request_id } = await begun();
    const bytes = randomBytes(1000);
    const right = { 'content-md5': md5(bytes).toString('base64') };
    assert.equal((await putPart(url, bytes, right)).status, 200);
    const damaged = Buffer.from(bytes);
    damaged[500] = (damaged[500] ?? 0) ^ 1;
    assert.match((await problemOf(await putPart(url, damaged, right), 'bad_request')).detail, /Content-MD5/);
    await problemOf(await putPart(url, bytes, { 'content-md5': 'nonsense' }), 'bad_request');
    const [part] = await service.stores.requests.parts(request_id);
    assert.equal(part?.etag, md5(bytes).toString('hex'), 'the good one is still there');
  });

  test('cannot be empty', async () => {
    await problemOf(await putPart((await begun()).url, Buffer.alloc(0)), 'bad_request');
  });

  test('cannot be uploaded with the URL of another part or request, or a changed URL', async () => {
    const { presigned_urls, request_id } = await begun({ part_count: 2 });
    const other = await begun();
    const [first, second] = presigned_urls.map(({ url }) => url) as [string, string];
    const swapped = [
      altered(first, (url) => {
        url.pathname = new URL(second).pathname;
      }),
      altered(first, (url) => {
        url.pathname = new URL(other.url).pathname;
      }),
      altered(first, (url) => {
        url.searchParams.set('expires', String(Number(url.searchParams.get('expires')) + 1));
      }),
      altered(first, (url) => {
        url.searchParams.set('signature', `A${url.searchParams.get('signature')?.slice(1)}`);
      }),
      altered(first, (url) => {
        url.searchParams.set('signature', '');
      }),
    ];
    for (const url of swapped.filter((changed) => changed !== first)) {
      await problemOf(await putPart(url, Buffer.from('x')), 'forbidden');
    }
    assert.deepEqual(await service.stores.requests.parts(request_id), []);
    const bare = altered(first, (url) => {
      url.search = '';
    });
    await problemOf(await putPart(bare, Buffer.from('x'), { [API_KEY_HEADER]: client.key }), 'bad_request');
  });

  test('is refused when its URL has expired, or its upload is complete or deleted', async () => {
    const clock = new Clock();
    const timed = await testApp({}, { now: clock.now });
    const timedClient = await AsynchClient.of(timed);
    const upload = await timedClient.send(randomBytes(100), 1);
    const url = upload.presigned_urls[0]?.url ?? '';
    assert.equal((await timedClient.complete(upload)).status, 200);
    await problemOf(await putPart(url, Buffer.from('x')), 'conflict');
    await timedClient.delete(upload.request_id);
    await problemOf(await putPart(url, Buffer.from('x')), 'not_found');
    clock.ms += 24 * 3_600_000;
    await problemOf(await putPart(url, Buffer.from('x')), 'forbidden');
  });

  test('that is interrupted leaves nothing and is not acknowledged', async () => {
    const { url, request_id } = await begun();
    const { pathname, search, port } = new URL(url);
    const raw = new RawClient(Number(port)).send(
      head('PUT', pathname + search, { 'content-length': 100_000 }),
    );
    raw.send(randomBytes(50_000));
    while ((await filesOf(service.dataDir)).every((file) => !file.includes(request_id))) await sleep(5);
    raw.destroy();
    while ((await filesOf(service.dataDir)).some((file) => file.includes(request_id))) await sleep(5);
    assert.deepEqual(await service.stores.requests.parts(request_id), []);
  });

  test('that arrives too slowly is a timeout', async () => {
    const hasty = await testApp({}, { bodyTimeouts: { part: { idleMs: 100, totalMs: 1_000 } } });
    const begunThere = await (await (await AsynchClient.of(hasty)).initiate({})).json();
    const { pathname, search, port } = new URL((begunThere as InitiateResult).presigned_urls[0]?.url ?? '');
    const raw = new RawClient(Number(port)).send(head('PUT', pathname + search, { 'content-length': 100 }));
    raw.send('x');
    assert.equal((await raw.answer()).status, 408);
    raw.destroy();
    assert.deepEqual(await filesOf(hasty.dataDir), []);
  });

  test('is refused as soon as all parts together exceed 1 GiB, with or without Content-Length', async () => {
    const { presigned_urls, request_id } = await begun({ part_count: 2 });
    const { requests } = service.stores;
    // Only the record of a full-size part is stored: uploading its bytes would take too long.
    const large = { number: 1, blob: '1-large', etag: 'x', bytes: ASYNCH_LIMITS.maxFileBytes - 100_000 };
    await requests.addPart(request_id, large, NO_LIMITS);
    const url = presigned_urls[1]?.url ?? '';
    const announced = await problemOf(await putPart(url, randomBytes(100_001)), 'file_too_large');
    assert.equal(announced.max_bytes, 2 ** 30);
    await problemOf(await putPart(url, new Blob([randomBytes(300_000)]).stream()), 'file_too_large');
    assert.deepEqual(
      (await filesOf(service.dataDir)).filter((file) => file.includes(request_id)),
      [],
    );
    assert.equal((await putPart(url, randomBytes(100_000))).status, 200, 'what just fits is taken');
  });

  test('uploaded again while the first upload hangs wins, and only it is counted', async () => {
    const { presigned_urls, request_id } = await begun({ part_count: 2 });
    const large = { number: 1, blob: '1-large', etag: 'x', bytes: ASYNCH_LIMITS.maxFileBytes - 100_000 };
    await service.stores.requests.addPart(request_id, large, NO_LIMITS);
    const url = presigned_urls[1]?.url ?? '';
    const { pathname, search, port } = new URL(url);
    const first = new RawClient(Number(port)).send(
      head('PUT', pathname + search, { 'content-length': 90_000 }),
    );
    first.send(randomBytes(80_000));
    while ((await filesOf(service.dataDir)).every((file) => !file.includes(request_id))) await sleep(5);
    const bytes = randomBytes(90_000);
    const second = await putPart(url, bytes);
    assert.equal(second.status, 200, await second.text());
    assert.equal((await first.answer()).status, 409);
    first.destroy();
    const parts = await service.stores.requests.parts(request_id);
    assert.equal(parts[1]?.etag, md5(bytes).toString('hex'));
    assert.deepEqual(
      (await filesOf(service.dataDir)).filter((file) => file.includes(request_id)),
      [`uploads/${request_id}/${parts[1]?.blob}`],
    );
  });

  test('counts towards 1 GiB while it is arriving', async () => {
    const { presigned_urls, request_id } = await begun({ part_count: 3 });
    const large = { number: 1, blob: '1-large', etag: 'x', bytes: ASYNCH_LIMITS.maxFileBytes - 100_000 };
    await service.stores.requests.addPart(request_id, large, NO_LIMITS);
    const { pathname, search, port } = new URL(presigned_urls[1]?.url ?? '');
    const raw = new RawClient(Number(port)).send(
      head('PUT', pathname + search, { 'content-length': 90_000 }),
    );
    raw.send(randomBytes(80_000));
    while ((await filesOf(service.dataDir)).every((file) => !file.includes(request_id))) await sleep(5);
    // The limiter counts what has been written, which is a moment after the file exists.
    await sleep(100);
    await problemOf(await putPart(presigned_urls[2]?.url ?? '', randomBytes(50_000)), 'file_too_large');
    raw.send(randomBytes(10_000));
    assert.equal((await raw.answer()).status, 200);
    raw.destroy();
  });
});

describeEmbedded('the storage of a key', () => {
  test('has a limit: 413 with figures, with or without Content-Length; deleting frees space; other keys have their own', async () => {
    const small = await testApp({ SERVICE_STORAGE_LIMIT: '100000' });
    const owner = await AsynchClient.of(small);
    const [first, second] = [
      await owner.send(randomBytes(60_000), 1),
      await (await owner.initiate({})).json(),
    ];
    const url = (second as InitiateResult).presigned_urls[0]?.url ?? '';
    const problem = await problemOf(await putPart(url, randomBytes(50_000)), 'storage_limit');
    assert.deepEqual([problem.limit_bytes, problem.used_bytes], [100_000, 60_000]);
    await problemOf(await putPart(url, new Blob([randomBytes(50_000)]).stream()), 'storage_limit');
    assert.equal((await putPart(url, randomBytes(40_000))).status, 200, 'what just fits is taken');
    const { key } = await small.stores.keys.create('another');
    await (await AsynchClient.of(small, key)).send(randomBytes(90_000), 1);
    assert.equal((await owner.delete(first.request_id)).status, 204);
    assert.equal((await putPart(url, randomBytes(90_000))).status, 200);
  });
});

describeEmbedded('bytes that are arriving', () => {
  test('count towards the storage limit of the owner: the disk never holds more than that', async () => {
    const limit = 100_000;
    const small = await testApp();
    const { key } = await small.stores.keys.create('small', { owner: 'small', limits: { storage: limit } });
    const { key: second } = await small.stores.keys.create('second', { owner: 'small' });
    const clients = [await AsynchClient.of(small, key), await AsynchClient.of(small, second)] as const;
    const urls = await Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        const begun = (await (await clients[i % 2]?.initiate({}))?.json()) as InitiateResult;
        return begun.presigned_urls[0]?.url ?? '';
      }),
    );
    const onDisk = async () => {
      const sizes = (await filesOf(small.dataDir)).map(
        async (path) => (await stat(join(small.dataDir, path))).size,
      );
      return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    };

    // The first upload brings most of its bytes, and then waits.
    const open = Promise.withResolvers<void>();
    const first = putPart(
      urls[0] ?? '',
      ReadableStream.from(
        (async function* () {
          yield randomBytes(60_000);
          await open.promise;
        })(),
      ),
    );
    while ((await onDisk()) < 60_000) await sleep(10);

    // Meanwhile all others are refused, whether or not they announce their length, and before they are complete.
    for (const [i, url] of urls.slice(1, 10).entries()) {
      const body = i % 2 === 0 ? randomBytes(50_000) : new Blob([randomBytes(50_000)]).stream();
      const problem = await problemOf(await putPart(url, body), 'storage_limit');
      assert.deepEqual([problem.limit, problem.limit_bytes], [limit, limit]);
      assert.ok(Number(problem.used) >= 60_000);
    }
    assert.ok((await onDisk()) <= limit);
    open.resolve();
    assert.equal((await first).status, 200);

    // Together they would bring ten times the limit.
    const rest = await Promise.all(urls.slice(10).map((url) => putPart(url, randomBytes(30_000))));
    assert.equal(rest.filter(({ status }) => status === 200).length, 1);
    assert.ok((await onDisk()) <= limit);
    assert.equal((await putPart(urls[1] ?? '', randomBytes(10_000))).status, 200, 'what just fits is taken');

    const full = await problemOf((await clients[1].initiate({})) as Response, 'storage_limit');
    assert.deepEqual([full.limit, full.used], [limit, limit], 'before anything is sent');
  });

  test('are given back when an upload is interrupted or erased, even to a part that began before', async () => {
    const small = await testApp({ SERVICE_STORAGE_LIMIT: '100000' });
    const owner = await AsynchClient.of(small);
    const [slow, other] = await Promise.all(
      ['slow', 'other'].map(async () => (await (await owner.initiate({})).json()) as InitiateResult),
    );
    const { port } = await small.listen();
    const { pathname, search } = new URL(slow?.presigned_urls[0]?.url ?? '');
    const headers = { 'content-length': '90000' };
    const interrupted = new RawClient(port).send(head('PUT', pathname + search, headers));
    interrupted.send(randomBytes(10_000));
    const url = other?.presigned_urls[0]?.url ?? '';
    while ((await filesOf(small.dataDir)).length === 0) await sleep(10);
    await problemOf(await putPart(url, randomBytes(50_000)), 'storage_limit');
    interrupted.destroy();
    let answer = await putPart(url, randomBytes(50_000));
    while (answer.status === 413) answer = await putPart(url, randomBytes(50_000));
    assert.equal(answer.status, 200);

    // 50,000 are stored. A slow part of 40,000 begins; the stored ones are erased before more than the first limit is needed.
    const open = Promise.withResolvers<void>();
    const body = async function* () {
      yield randomBytes(40_000);
      await open.promise;
      yield randomBytes(50_000);
    };
    const growing = putPart(slow?.presigned_urls[0]?.url ?? '', ReadableStream.from(body()));
    while ((await filesOf(small.dataDir)).length < 2) await sleep(10);
    assert.equal((await owner.delete(other?.request_id ?? '')).status, 204);
    open.resolve();
    assert.equal((await growing).status, 200);
  });
});

describe('open uploads and queued requests', () => {
  test('have limits: 429 with figures; deleting an upload makes room; a retried call is not refused', async () => {
    const { key } = await service.stores.keys.create('few', { owner: 'few', limits: { open: 2 } });
    const few = await AsynchClient.of(service, key);
    const idempotent = { method: 'POST', headers: { 'idempotency-key': 'once' } };
    const initiate = `${ASYNCH_PATHS.initiate}?file_name=a.wav&part_count=1`;
    const once = async () => (await (await few.call(initiate, idempotent)).json()) as InitiateResult;
    const first = await once();
    const answers = await Promise.all(Array.from({ length: 6 }, () => few.initiate({})));
    assert.equal(answers.filter(({ status }) => status === 200).length, 1);
    const problem = await problemOf(await few.initiate({}), 'quota_exceeded');
    assert.deepEqual([problem.limit, problem.used], [2, 2]);
    assert.equal((await once()).request_id, first.request_id);
    const one = await few.call(ASYNCH_PATHS.requests, { method: 'POST', body: randomBytes(1_000) });
    await problemOf(one, 'quota_exceeded');
    await few.delete(first.request_id);
    assert.equal((await few.initiate({})).status, 200);
    assert.equal((await client.initiate({})).status, 200, 'another owner');
  });

  test('a full queue: 429 with Retry-After, the upload stays open and can be completed later', async () => {
    const { key } = await service.stores.keys.create('patient', { owner: 'patient', limits: { queued: 1 } });
    const patient = await AsynchClient.of(service, key);
    const whole = { method: 'POST', body: randomBytes(1_000) };
    const queued = (await (await patient.call(ASYNCH_PATHS.requests, whole)).json()) as {
      request_id: string;
    };
    await problemOf(await patient.call(ASYNCH_PATHS.requests, whole), 'quota_exceeded');
    const upload = await patient.send(randomBytes(1_000), 2);
    const refused = await patient.complete(upload);
    assert.ok(Number(refused.headers.get('retry-after')) > 0);
    const problem = await problemOf(refused, 'quota_exceeded');
    assert.deepEqual([problem.limit, problem.used], [1, 1]);
    await patient.delete(queued.request_id);
    assert.equal((await patient.complete(upload)).status, 200);
    assert.equal((await patient.complete(upload)).status, 200, 'again is harmless');
  });
});

describeEmbedded('revoking a key', () => {
  test('invalidates its upload URLs and unfinished requests', async () => {
    const { key, record } = await service.stores.keys.create('leaver');
    const leaver = await AsynchClient.of(service, key);
    const upload = await leaver.send(randomBytes(1000), 1);
    assert.ok('revoked' in (await service.stores.keys.revoke(record.id)));
    await problemOf(await putPart(upload.presigned_urls[0]?.url ?? '', randomBytes(10)), 'not_found');
    assert.equal(await service.stores.requests.find(upload.request_id), null);
    await service.sweep.run();
    assert.ok((await filesOf(service.dataDir)).every((file) => !file.includes(upload.request_id)));
  });
});

describeEmbedded('an upload URL', () => {
  async function urlFor(key: string, app = service): Promise<string> {
    const response = await (await AsynchClient.of(app, key)).initiate({});
    return ((await response.json()) as InitiateResult).presigned_urls[0]?.url ?? '';
  }

  test('is refused once the key has expired', async () => {
    const { key } = await service.stores.keys.create('brief', { expiresAt: new Date(Date.now() + 500) });
    const url = await urlFor(key);
    assert.equal((await putPart(url, randomBytes(10))).status, 200);
    await sleep(500);
    await problemOf(await putPart(url, randomBytes(10)), 'forbidden');
  });

  test('holds while its owner has another key, and for the key in SERVICE_API_KEY', async () => {
    const { key, record } = await service.stores.keys.create('old', { owner: 'rotating' });
    await service.stores.keys.create('new', { owner: 'rotating' });
    const url = await urlFor(key);
    await service.stores.keys.revoke(record.id);
    assert.equal((await putPart(url, randomBytes(10))).status, 200);
    const SERVICE_API_KEY = 'key-from-environment';
    const other = await urlFor(SERVICE_API_KEY, await testApp({ SERVICE_API_KEY }));
    assert.equal((await putPart(other, randomBytes(10))).status, 200);
  });
});

describe('a body that is not needed', () => {
  test('may be empty or absent with any content type', async () => {
    for (const type of ['application/json', 'application/x-www-form-urlencoded', 'text/plain', 'x/y']) {
      const headers = { 'content-type': type };
      const query = '?file_name=a.wav&part_count=1';
      const begunNow = await client.call(ASYNCH_PATHS.initiate + query, {
        method: 'POST',
        headers,
        body: '',
      });
      assert.equal(begunNow.status, 200, type);
      const { request_id } = (await begunNow.json()) as InitiateResult;
      const path = `${ASYNCH_PATHS.requests}/${request_id}`;
      assert.equal((await client.call(path, { method: 'DELETE', headers })).status, 204, type);
    }
  });
});

describe('deleting', () => {
  test('twice is 204 twice, and in between the request is 404', async () => {
    const { request_id } = await begun();
    assert.equal((await client.delete(request_id)).status, 204);
    await problemOf(await client.prediction(request_id), 'not_found');
    assert.equal((await client.delete(request_id)).status, 204);
    const { key } = await service.stores.keys.create('neighbour');
    await problemOf(await (await AsynchClient.of(service, key)).delete(request_id), 'not_found');
  });
});

describe('complete', () => {
  test('returns the state, also when called again', async () => {
    const upload = await client.send(randomBytes(3000), 3);
    for (let times = 0; times < 3; times++) {
      const response = await client.complete(upload);
      assert.deepEqual(
        [response.status, await response.json()],
        [200, { request_id: upload.request_id, status: 'queued' }],
      );
    }
    assert.equal((await client.complete({ ...upload, parts: upload.parts.slice(1) })).status, 200);
  });

  test('accepts the parts in any order, ETags with or without quotes', async () => {
    const upload = await client.send(randomBytes(3000), 3);
    const parts = upload.parts.toReversed().map(({ PartNumber, ETag }) => ({
      PartNumber,
      ETag: PartNumber === 2 ? ETag.replaceAll('"', '').toUpperCase() : ETag,
    }));
    assert.equal((await client.complete({ ...upload, parts })).status, 200);
  });

  test('lists missing and wrong parts and leaves the upload open', async () => {
    const begunUpload = await begun({ part_count: 4 });
    const parts = [];
    for (const { part_number, url } of begunUpload.presigned_urls.filter((one) => one.part_number !== 2)) {
      const etag = (await putPart(url, Buffer.from(`part ${part_number}`))).headers.get('etag') ?? '';
      parts.push({ PartNumber: part_number, ETag: part_number === 3 ? '"0123"' : etag });
    }
    const problem = await problemOf(
      await client.complete({
        ...begunUpload,
        parts: [...parts.slice(0, 2), { PartNumber: 9, ETag: '"x"' }],
      }),
      'bad_request',
    );
    assert.deepEqual([problem.missing_parts, problem.wrong_parts], [[2], [3, 4, 9]]);
    assert.match(problem.detail, /stays open/);

    const again = await putPart(begunUpload.presigned_urls[1]?.url ?? '', Buffer.from('part 2'));
    const all = [1, 2, 3, 4].map((PartNumber) => ({
      PartNumber,
      ETag: `"${md5(Buffer.from(`part ${PartNumber}`)).toString('hex')}"`,
    }));
    assert.equal(again.status, 200);
    assert.equal((await client.complete({ ...begunUpload, parts: all })).status, 200);
  });

  test('refuses one part with two ETags', async () => {
    const upload = await client.send(randomBytes(100), 1);
    const parts = [{ PartNumber: 1, ETag: '"other"' }, ...upload.parts];
    const problem = await problemOf(await client.complete({ ...upload, parts }), 'bad_request');
    assert.deepEqual(problem.wrong_parts, [1]);
    assert.equal((await client.complete(upload)).status, 200);
  });

  test('needs the upload_id of the request', async () => {
    const upload = await client.send(randomBytes(100), 1);
    await problemOf(await client.complete({ ...upload, upload_id: randomUUID() }), 'not_found');
    await problemOf(await client.complete({ ...upload, request_id: randomUUID() }), 'not_found');
  });

  test('explains an invalid body', async () => {
    const { parts: _parts, ...incomplete } = await client.send(randomBytes(100), 1);
    for (const body of ['', '{', '[]', '{}', JSON.stringify({ ...incomplete, parts: [] })]) {
      const headers = { 'content-type': 'application/json' };
      await problemOf(
        await client.call(ASYNCH_PATHS.complete, { method: 'POST', headers, body }),
        'bad_request',
      );
    }
  });
});

testEmbedded('the progress of an upload is the share of received parts', async () => {
  const { presigned_urls, request_id } = await begun({ part_count: 4 });
  await putPart(presigned_urls[3]?.url ?? '', Buffer.from('x'));
  const response = await client.prediction(request_id);
  assert.deepEqual(
    [response.status, await response.json()],
    [202, { request_id, status: 'uploading', progress: 0.25 }],
  );
});

test('two keys never see each other’s requests', async () => {
  const { key } = await service.stores.keys.create('somebody else');
  const stranger = await AsynchClient.of(service, key);
  const upload = await client.send(randomBytes(100), 1);
  for (const attempt of [
    () => stranger.prediction(upload.request_id),
    () => stranger.complete(upload),
    () => stranger.delete(upload.request_id),
  ]) {
    await problemOf(await attempt(), 'not_found');
  }
  assert.equal((await client.prediction(upload.request_id)).status, 202);
  assert.equal((await client.delete(upload.request_id)).status, 204);
});

test('an invalid request_id is refused with an explanation', async () => {
  for (const id of ['', 'x', '../..', 'ffffffff-ffff-ffff-ffff-fffffffffffg']) {
    await problemOf(await client.prediction(encodeURIComponent(id)), 'bad_request');
  }
  await problemOf(await client.prediction(randomUUID()), 'not_found');
  await problemOf(await client.delete(randomUUID()), 'not_found');
});

testEmbedded('deleting an upload while a part is arriving leaves nothing', async () => {
  const { url, request_id } = await begun();
  const { pathname, search, port } = new URL(url);
  const raw = new RawClient(Number(port)).send(head('PUT', pathname + search, { 'content-length': 1000 }));
  raw.send(randomBytes(500));
  while ((await filesOf(service.dataDir)).every((file) => !file.includes(request_id))) await sleep(5);
  assert.equal((await client.delete(request_id)).status, 204);
  raw.send(randomBytes(500));
  assert.equal((await raw.answer()).status, 404);
  raw.destroy();
  assert.ok((await filesOf(service.dataDir)).every((file) => !file.includes(request_id)));
});
