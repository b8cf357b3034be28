import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import {
  API_KEY_HEADER,
  ASYNCH_LIMITS,
  ASYNCH_PATHS,
  type CompleteResult,
  type InitiateResult,
  PATHS,
  type RequestList,
  type UploadStatus,
} from '@undertone/contract';
import {
  CompleteResult as CompleteSchema,
  RequestList as ListSchema,
  UploadStatus as UploadSchema,
} from '@undertone/contract/schemas';
import { tempDir, testApp } from '@undertone/testing/app';
import { AsynchClient, filesOf, putPart } from '@undertone/testing/asynch-client';
import { FORM_TYPE, fileForm, form } from '@undertone/testing/form';
import { problemOf } from '@undertone/testing/problem';
import { head, RawClient } from '@undertone/testing/socket';
import { wav } from '@undertone/testing/wav';
import Value from 'typebox/value';

const service = await testApp();
const client = await AsynchClient.of(service);
const { url, port } = await service.listen();
const recording = wav({ seconds: 6, rate: 16_000 });
const SEND = PATHS.asynch + ASYNCH_PATHS.requests;

/** The only app here whose worker runs. */
const working = await testApp();
working.services.worker.start();

const post = (body: unknown, headers: Record<string, string> = {}, query = '', by = client) =>
  by.call(`${ASYNCH_PATHS.requests}${query}`, {
    method: 'POST',
    body,
    headers,
    duplex: 'half',
  } as RequestInit);

async function accepted(response: Response): Promise<string> {
  const text = await response.text();
  assert.equal(response.status, 202, text);
  const answer = JSON.parse(text) as CompleteResult;
  assert.ok(Value.Check(CompleteSchema, answer), text);
  assert.equal(answer.status, 'queued');
  return answer.request_id;
}
const stored = async () => service.stores.requests.countByState();

describe('a whole recording in one call', () => {
  test('may be the body, with a length or chunked, or the file of a form, with the same answers', async () => {
    const sender = await AsynchClient.of(working);
    const ids: string[] = [];
    for (const [body, type] of [
      [recording, 'audio/wav'],
      [new Blob([recording]).stream(), 'application/octet-stream'],
      [recording, 'application/x-www-form-urlencoded'],
      [fileForm(recording), FORM_TYPE],
    ] as const) {
      ids.push(await accepted(await post(body, { 'content-type': type }, '', sender)));
    }
    const usual = await sender.result(await sender.upload(recording, 2));
    for (const id of ids) assert.deepEqual((await sender.result(id)).emotions, usual.emotions);
    while ((await filesOf(working.dataDir)).length > 0) await sleep(10);
  });

  test('curl -X POST -T works, from a file and from a pipe', async () => {
    const path = join(await tempDir(), 'call.wav');
    await writeFile(path, recording);
    const key = ['-H', `${API_KEY_HEADER}: ${service.key}`];
    const args = ['--silent', '--show-error', '-X', 'POST', ...key];
    const run = promisify(execFile);
    const fromFile = await run('curl', [...args, '-T', path, `${url}${SEND}?label=curl`]);
    assert.equal(JSON.parse(fromFile.stdout).status, 'queued');
    const piped = run('curl', [...args, '-T', '-', url + SEND]);
    createReadStream(path).pipe(piped.child.stdin as NodeJS.WritableStream);
    assert.equal(JSON.parse((await piped).stdout).status, 'queued');
  });

  test('accepts the query parameters of initiate', async () => {
    const id = await accepted(
      await post(recording, {}, '?label=Monday&model=7emotions&step=3&channels=separate'),
    );
    const { label, model, intervalSeconds, channels } = (await service.stores.requests.find(id)) ?? {};
    assert.deepEqual([label, model, intervalSeconds, channels], ['Monday', '7emotions', 3, 'separate']);
    await problemOf(await post(recording, {}, '?model=6emotions'), 'unknown_model');
    await problemOf(await post(recording, {}, `?label=${'x'.repeat(101)}`), 'bad_request');
    for (const query of [
      'label=a%00b',
      'label=a%0Ab',
      'label=%C2%85',
      'webhook_url=https://example.org/%00',
    ]) {
      const { detail } = await problemOf(await post(recording, {}, `?${query}`), 'bad_request');
      assert.match(detail, /^(label|webhook_url) contains control characters/);
    }
    const both = await problemOf(await post(recording, {}, '?step=3&interval=4'), 'bad_request');
    assert.match(both.detail, /same setting/);
  });

  test('a body that is not a recording is refused and not stored', async () => {
    const before = await stored();
    await problemOf(await post(''), 'bad_request');
    await problemOf(await post('{}', { 'content-type': 'application/json' }), 'unsupported_media_type');
    await problemOf(await post(recording, { 'content-encoding': 'gzip' }), 'unsupported_media_type');
    const noFile = form({ name: 'sound', fileName: 'a.wav', content: recording });
    await problemOf(await post(noFile, { 'content-type': FORM_TYPE }), 'missing_file');
    const announced = new RawClient(port).send(
      head('POST', SEND, { [API_KEY_HEADER]: service.key, 'content-length': ASYNCH_LIMITS.maxFileBytes + 1 }),
    );
    assert.equal((await announced.answer()).status, 413);
    announced.destroy();
    assert.deepEqual(await stored(), before);
  });

  test('an interrupted or oversized upload leaves nothing behind', async () => {
    const before = await stored();
    const files = await filesOf(service.dataDir);
    const cut = new RawClient(port).send(
      head('POST', SEND, { [API_KEY_HEADER]: service.key, 'content-length': 1_000_000 }),
    );
    cut.send(recording.subarray(0, 100_000));
    while ((await filesOf(service.dataDir)).length === files.length) await sleep(10);
    cut.destroy();
    while ((await filesOf(service.dataDir)).length > files.length) await sleep(10);
    while (((await stored()).uploading ?? 0) > (before.uploading ?? 0)) await sleep(10);
    const small = await testApp({ SERVICE_STORAGE_LIMIT: '150000' });
    const body = new Blob([recording]).stream();
    const poor = await AsynchClient.of(small);
    const init = { method: 'POST', body, duplex: 'half' } as RequestInit;
    await problemOf(await poor.call(ASYNCH_PATHS.requests, init), 'storage_limit');
    assert.deepEqual(await filesOf(small.dataDir), []);
    assert.deepEqual(await small.stores.requests.countByState(), {});
  });
});

describe('Idempotency-Key', () => {
  const key = () => ({ 'idempotency-key': crypto.randomUUID() });
  const initiate = (headers: Record<string, string>, query: string, method = 'POST') =>
    client.call(`${ASYNCH_PATHS.initiate}?file_name=a.wav&part_count=2${query}`, { method, headers });
  const idOf = async (response: Response) => ((await response.json()) as InitiateResult).request_id;

  test('a retried initiate returns the same request; another query or method is a conflict', async () => {
    const headers = key();
    const first = (await (await initiate(headers, '&label=a')).json()) as InitiateResult;
    const again = (await (await initiate(headers, '&label=a')).json()) as InitiateResult;
    assert.deepEqual(
      [again.request_id, again.upload_id, again.presigned_urls.length],
      [first.request_id, first.upload_id, 2],
    );
    const problem = await problemOf(await initiate(headers, '&label=b'), 'conflict');
    assert.match(problem.detail, /Idempotency-Key/);
    await problemOf(await initiate(headers, '&label=a', 'GET'), 'conflict');
    await problemOf(await post(recording, headers, '?label=a'), 'conflict');
    assert.notEqual(await idOf(await initiate(key(), '&label=a')), first.request_id);
    const { key: another } = await service.stores.keys.create('another');
    const theirs = new AsynchClient(url, another).call(
      `${ASYNCH_PATHS.initiate}?file_name=a.wav&part_count=2&label=a`,
      { method: 'POST', headers },
    );
    assert.notEqual(await idOf(await theirs), first.request_id);
    await problemOf(await initiate({ 'idempotency-key': 'x'.repeat(256) }, ''), 'bad_request');
  });

  test('a retried recording is stored once', async () => {
    const headers = key();
    const id = await accepted(await post(recording, headers));
    assert.equal(await accepted(await post(recording, headers)), id);
  });

  test('a concurrent call gets a 409 with Retry-After; an interrupted one leaves the key free', async () => {
    const before = (await stored()).uploading ?? 0;
    const headers = key();
    const slow = new RawClient(port).send(
      head('POST', SEND, { [API_KEY_HEADER]: service.key, ...headers, 'content-length': 1_000_000 }),
    );
    slow.send(recording.subarray(0, 50_000));
    while (((await stored()).uploading ?? 0) === before) await sleep(10);
    const running = await post(recording, headers);
    assert.equal(running.headers.get('retry-after'), '5');
    await problemOf(running, 'conflict');
    slow.destroy();
    let answer = await post(recording, headers);
    while (answer.status === 409) {
      await sleep(10);
      answer = await post(recording, headers);
    }
    await accepted(answer);
  });
});

describe('an interrupted upload', () => {
  test('gets the parts received and the URLs of the rest, and continues', async () => {
    const half = Math.ceil(recording.length / 2);
    const begun = (await (await client.initiate({ part_count: 2 })).json()) as InitiateResult;
    const path = `${ASYNCH_PATHS.upload}/${begun.request_id}`;
    const [first] = begun.presigned_urls;
    await putPart(first?.url ?? '', recording.subarray(0, half));
    const state = (await (await client.call(path)).json()) as UploadStatus;
    assert.ok(Value.Check(UploadSchema, state));
    assert.deepEqual([state.status, state.part_count, state.upload_id], ['uploading', 2, begun.upload_id]);
    assert.deepEqual(
      state.parts.map(({ PartNumber, bytes }) => [PartNumber, bytes]),
      [[1, half]],
    );
    assert.deepEqual(
      state.presigned_urls.map(({ part_number }) => part_number),
      [2],
    );
    const rest = await putPart(state.presigned_urls[0]?.url ?? '', recording.subarray(half));
    const parts = [...state.parts, { PartNumber: 2, ETag: rest.headers.get('etag') ?? '' }];
    assert.equal((await client.complete({ ...begun, parts })).status, 200);
    const done = (await (await client.call(path)).json()) as UploadStatus;
    assert.deepEqual([done.status, done.parts.length, done.presigned_urls.length], ['queued', 2, 0]);
  });

  test('is visible to its owner only', async () => {
    const { request_id } = (await (await client.initiate({})).json()) as InitiateResult;
    const { key } = await service.stores.keys.create('nosy');
    const nosy = new AsynchClient(url, key);
    await problemOf(await nosy.call(`${ASYNCH_PATHS.upload}/${request_id}`), 'not_found');
    await problemOf(await client.call(`${ASYNCH_PATHS.upload}/${crypto.randomUUID()}`), 'not_found');
    await problemOf(await client.call(`${ASYNCH_PATHS.upload}/nothing`), 'bad_request');
  });
});

test('a list shows the requests of a key with their labels, newest first, page by page', async () => {
  const mine = await AsynchClient.of(working, (await working.stores.keys.create('lists')).key);
  const list = async (query = '') => {
    const response = await mine.call(ASYNCH_PATHS.requests + query);
    const text = await response.text();
    assert.equal(response.status, 200, text);
    const answer = JSON.parse(text) as RequestList;
    assert.ok(Value.Check(ListSchema, answer), text);
    return answer;
  };
  assert.deepEqual(await list(), { requests: [], next_cursor: null });
  for (const label of ['one', 'two', 'three']) {
    await mine.initiate({ label });
    await sleep(2);
  }
  await mine.initiate({});
  const labels = (answer: RequestList) => answer.requests.map(({ label }) => label);
  const all = await list();
  assert.deepEqual(labels(all), [null, 'three', 'two', 'one']);
  const [newest] = all.requests;
  assert.deepEqual([newest?.status, newest?.progress, newest?.duration_seconds], ['uploading', 0, null]);
  const first = await list('?limit=3');
  assert.deepEqual(labels(first), [null, 'three', 'two']);
  const second = await list(`?limit=3&cursor=${encodeURIComponent(first.next_cursor ?? '')}`);
  assert.deepEqual([labels(second), second.next_cursor], [['one'], null]);
  assert.deepEqual(await list('?status=completed'), { requests: [], next_cursor: null });
  const id = await mine.upload(recording, 1, { label: 'done' });
  await mine.result(id);
  const [done] = (await list('?status=completed')).requests;
  assert.deepEqual([done?.label, done?.duration_seconds, done?.progress], ['done', 6, 1]);
  for (const query of ['?limit=0', '?limit=201', '?status=lost', '?cursor=nonsense']) {
    await problemOf(await mine.call(ASYNCH_PATHS.requests + query), 'bad_request');
  }
});
