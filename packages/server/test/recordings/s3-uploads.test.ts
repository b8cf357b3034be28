// Uploads whose parts go directly to S3, as seen by `complete` and by the sweep.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { API_KEY_HEADER, type UploadStatus } from '@undertone/contract';
import { testApp } from '@undertone/testing/app';
import { AsynchClient, putPart, type Upload } from '@undertone/testing/asynch-client';
import { problemOf } from '@undertone/testing/problem';
import { S3_CREDENTIALS, S3Server } from '@undertone/testing/s3-server';
import { head, RawClient } from '@undertone/testing/socket';
import { wav } from '@undertone/testing/wav';

Object.assign(process.env, S3_CREDENTIALS);

const s3 = await S3Server.shared();
after(() => s3.remove());
const service = await testApp({
  SERVICE_S3_BUCKET: await s3.newBucket(),
  SERVICE_S3_ENDPOINT: s3.endpoint,
  SERVICE_STORAGE_LIMIT: '1000000',
});
const client = await AsynchClient.of(service);
const recording = wav({ seconds: 12, rate: 16_000 });

describe('uploads straight to S3', () => {
  const left = () => service.stores.blobs.groups();

  test('a recording gets the same answer as one uploaded to the server, and is erased afterwards', async () => {
    service.services.worker.start();
    const upload = await client.send(recording, 3);
    for (const { url, expires_at } of upload.presigned_urls) {
      assert.ok(url.startsWith(s3.endpoint));
      assert.ok(Date.parse(expires_at ?? '') <= Date.now() + 3_600_000);
    }
    assert.equal((await client.complete(upload)).status, 200);
    assert.equal((await client.complete(upload)).status, 200, 'again is harmless');
    const { emotions } = await client.result(upload.request_id);
    assert.deepEqual(
      emotions.map(({ t }) => t),
      ['00:00', '00:05', '00:10'],
    );
    while ((await left()).length > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    await service.services.worker.stop();
  });

  test('a one-call upload passes through the server; an interrupted one leaves nothing', async () => {
    const init = { method: 'POST', body: new Blob([recording]).stream(), duplex: 'half' } as RequestInit;
    const response = await client.call('/requests', init);
    assert.equal(response.status, 202);
    const { request_id } = (await response.json()) as { request_id: string };
    const [part] = await service.stores.requests.parts(request_id);
    const chunks: Uint8Array[] = [];
    for await (const chunk of service.stores.blobs.read(request_id, part?.blob ?? '')) chunks.push(chunk);
    assert.ok(Buffer.concat(chunks).equals(recording));
    await client.delete(request_id);
    const { port } = await service.listen();
    const headers = { [API_KEY_HEADER]: service.key, 'content-length': 900_000 };
    const cut = new RawClient(port).send(head('POST', '/v1/asynch/requests', headers)).send(recording);
    const uploading = async () => (await service.stores.requests.countByState()).uploading ?? 0;
    while ((await uploading()) === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    cut.destroy();
    while ((await uploading()) > 0) await new Promise((resolve) => setTimeout(resolve, 10));
    assert.deepEqual(await left(), []);
  });

  test('one-call uploads that do not fit into memory are refused before their body is read', async () => {
    const { services } = service;
    const filled = services.streams.held.hold('somebody else');
    assert.ok(filled.resize(255 * 1024 * 1024));
    const chunked = { method: 'POST', body: new Blob([recording]).stream(), duplex: 'half' } as RequestInit;
    const refused = await client.call('/requests', chunked);
    assert.ok(Number(refused.headers.get('retry-after')) > 0);
    await problemOf(refused, 'overloaded');
    assert.deepEqual(await left(), []);
    const small = await client.call('/requests', { method: 'POST', body: recording });
    assert.equal(small.status, 202, 'its announced length fits');
    await client.delete(((await small.json()) as { request_id: string }).request_id);
    filled.release();
    assert.equal(services.streams.held.byOwner().size, 0);
  });

  test('an interrupted upload gets the parts received and new URLs for the rest', async () => {
    const begun = (await (await client.initiate({ part_count: 3 })).json()) as Upload;
    const put = await putPart(begun.presigned_urls[1]?.url ?? '', recording);
    const state = (await (await client.call(`/upload/${begun.request_id}`)).json()) as UploadStatus;
    assert.deepEqual(state.parts, [
      { PartNumber: 2, ETag: put.headers.get('etag'), bytes: recording.length },
    ]);
    assert.deepEqual(
      state.presigned_urls.map(({ part_number, url }) => [part_number, url.startsWith(s3.endpoint)]),
      [
        [1, true],
        [3, true],
      ],
    );
    await client.delete(begun.request_id);
  });

  test('missing and wrong parts are listed, and the upload stays open', async () => {
    const upload = await client.send(recording, 2);
    const [first, second] = upload.parts as [(typeof upload.parts)[0], (typeof upload.parts)[0]];
    const begun = (await (await client.initiate({ part_count: 2 })).json()) as typeof upload;
    assert.equal((await putPart(begun.presigned_urls[0]?.url ?? '', recording)).status, 200);
    const missing = await problemOf(await client.complete({ ...begun, parts: upload.parts }), 'bad_request');
    assert.deepEqual([missing['missing_parts'], missing['wrong_parts']], [[2], [1]]);
    const swapped = [first, { ...second, ETag: first.ETag }];
    const wrong = await problemOf(await client.complete({ ...upload, parts: swapped }), 'bad_request');
    assert.deepEqual(wrong['wrong_parts'], [2]);
    assert.equal((await client.complete(upload)).status, 200);
    for (const { request_id } of [upload, begun]) assert.equal((await client.delete(request_id)).status, 204);
  });

  test('the storage limit is checked at completion', async () => {
    const uploads = [];
    for (let i = 0; i < 3; i++) uploads.push(await client.send(recording, 1));
    const [one, two, three] = uploads as [(typeof uploads)[0], (typeof uploads)[0], (typeof uploads)[0]];
    for (const upload of [one, two]) assert.equal((await client.complete(upload)).status, 200);
    const refused = await problemOf(await client.complete(three), 'storage_limit');
    assert.deepEqual([refused['limit_bytes'], refused['used_bytes']], [1_000_000, 2 * recording.length]);
    assert.equal((await client.delete(one.request_id)).status, 204);
    assert.equal((await client.complete(three)).status, 200, 'there is room again');
    for (const { request_id } of [two, three]) assert.equal((await client.delete(request_id)).status, 204);
    assert.deepEqual(await left(), []);
  });

  test('a recording whose announced size cannot be stored is refused before it is sent', async () => {
    const size = recording.length;
    const first = await client.send(recording, 1, { file_size: size });
    assert.equal((await client.complete(first)).status, 200);
    const refused = await problemOf(await client.initiate({ file_size: 1_000_001 - size }), 'storage_limit');
    assert.deepEqual([refused['limit_bytes'], refused['used_bytes']], [1_000_000, size]);
    const tooLarge = await problemOf(await client.initiate({ file_size: 2 ** 30 + 1 }), 'file_too_large');
    assert.equal(tooLarge['max_bytes'], 2 ** 30);
    await problemOf(await client.initiate({ file_size: 0 }), 'bad_request');
    const fits = await client.initiate({ file_size: 1_000_000 - size });
    assert.equal(fits.status, 200);
    for (const { request_id } of [first, (await fits.json()) as Upload]) {
      assert.equal((await client.delete(request_id)).status, 204);
    }
  });

  test('parts that arrive count towards the storage limit, and uploads far above it are erased', async () => {
    const { key } = await service.stores.keys.create('greedy', {
      owner: 'greedy',
      limits: { storage: 500_000 },
    });
    const greedy = await AsynchClient.of(service, key);
    const uploads = [await greedy.send(recording, 1), await greedy.send(recording, 1)];
    await service.sweep.run();
    await problemOf(await greedy.initiate({}), 'storage_limit');
    assert.equal((await left()).length, 2, 'they may still be completed when there is room');
    const { presigned_urls } = uploads[1] ?? { presigned_urls: [] };
    assert.equal((await putPart(presigned_urls[0]?.url ?? '', Buffer.alloc(1_000_000))).status, 200);
    await service.sweep.run();
    assert.deepEqual(await left(), [uploads[0]?.request_id]);
    assert.equal((await greedy.initiate({})).status, 200);
    await greedy.delete(uploads[0]?.request_id ?? '');
  });

  test('parts uploaded after the request was deleted are swept', async () => {
    const { presigned_urls, request_id } = await client.send(recording, 1);
    await client.delete(request_id);
    assert.equal((await putPart(presigned_urls[0]?.url ?? '', recording)).status, 200, 'S3 knows no better');
    assert.deepEqual(await left(), [request_id]);
    await service.sweep.run();
    assert.deepEqual(await left(), []);
  });

  test('a part that changes after completion is not classified', async () => {
    const upload = await client.send(recording, 1);
    assert.equal((await client.complete(upload)).status, 200);
    await putPart(upload.presigned_urls[0]?.url ?? '', wav({ seconds: 12, rate: 16_000, sound: () => 0 }));
    const [part] = await service.stores.requests.parts(upload.request_id);
    const { blob = '', etag } = part ?? {};
    await assert.rejects(async () => {
      for await (const _ of service.stores.blobs.read(upload.request_id, blob, { etag }));
    }, /pre-?condition/i);
    await client.delete(upload.request_id);
  });

  test('the sweep does not touch an upload in progress', async () => {
    const upload = await client.send(recording, 2);
    await service.sweep.run();
    assert.equal((await client.complete(upload)).status, 200);
    await client.delete(upload.request_id);
  });
});
