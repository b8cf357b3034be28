import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_KEY_HEADER, ASYNCH_PATHS, PATHS, type RequestList } from '@undertone/contract';
import { postFile, readProblem, testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { problemOf } from '@undertone/testing/problem';
import { refusal, StreamClient, streamUrl } from '@undertone/testing/stream-client';
import { wav } from '@undertone/testing/wav';

const service = await testApp();

async function keyOf(name: string, options: Parameters<typeof service.stores.keys.create>[1] = {}) {
  const { key, record } = await service.stores.keys.create(name, options);
  return { key, id: record.id, client: await AsynchClient.of(service, key) };
}

describe('keys of one owner', () => {
  test('see the same requests and the same webhook secret; the key of another owner sees none of them', async () => {
    const old = await keyOf('old', { owner: 'anna' });
    const replacement = await keyOf('new', { owner: 'anna' });
    const stranger = await keyOf('stranger');
    const upload = await old.client.send(randomBytes(1_000), 1, { label: 'rotated' });
    await service.stores.keys.revoke(old.id);

    const listed = async ({ client }: { client: AsynchClient }) =>
      ((await (await client.call(ASYNCH_PATHS.requests)).json()) as RequestList).requests.map(
        ({ request_id }) => request_id,
      );
    assert.deepEqual(await listed(replacement), [upload.request_id]);
    assert.deepEqual(await listed(stranger), []);
    assert.equal((await stranger.client.complete(upload)).status, 404);
    assert.equal((await replacement.client.complete(upload)).status, 200);
    assert.equal((await replacement.client.prediction(upload.request_id)).status, 202);
    assert.equal((await replacement.client.delete(upload.request_id)).status, 204);

    const third = await keyOf('third', { owner: 'anna' });
    const secretOf = async ({ client }: { client: AsynchClient }) =>
      ((await (await client.call(ASYNCH_PATHS.webhookSecret)).json()) as { secret: string }).secret;
    assert.equal(await secretOf(third), await secretOf(replacement));
    assert.notEqual(await secretOf(stranger), await secretOf(replacement));
  });
});

describe('the limits of a key', () => {
  test('rate: the key that passes its own gets a 429 with figures; others keep the one of the settings', async () => {
    const { key } = await keyOf('slow', { limits: { rate: 2 } });
    const call = (key: string) =>
      service.app.inject({ url: `${PATHS.rateLimit}/status`, headers: { [API_KEY_HEADER]: key } });
    const first = await call(key);
    assert.equal(first.headers['ratelimit-limit'], '2');
    assert.equal(first.json().limits.requests_per_minute, 2);
    assert.equal((await call(key)).statusCode, 200);
    const refused = await call(key);
    assert.equal(refused.statusCode, 429);
    assert.ok(Number(refused.headers['retry-after']) > 0);
    assert.partialDeepStrictEqual(refused.json(), { code: 'rate_limited', limit: 2, used: 2 });
    const other = await call(service.key);
    assert.equal(other.statusCode, 200);
    assert.equal(other.headers['ratelimit-limit'], undefined, 'the settings have none');
  });

  test('streams: one more is 429 at the upgrade, with figures', async () => {
    const { key } = await keyOf('single', { limits: { streams: 1 } });
    const { url } = await service.listen();
    const first = new StreamClient(url, key);
    await first.received(1);
    const refused = await refusal(streamUrl(url), { headers: { [API_KEY_HEADER]: key } });
    assert.partialDeepStrictEqual(readProblem(refused, 'rate_limited'), { limit: 1, used: 1 });
    await StreamClient.open(service);
    await first.end();
  });

  test('audio_hours: short recordings, streams and uploads are refused once they are used up', async () => {
    const hours = { owner: 'hours', limits: { audio_hours: 0.002 } };
    const { key } = await keyOf('first', hours);
    const { client } = await keyOf('second', { owner: 'hours' });
    const { url } = await service.listen();
    const clip = wav({ seconds: 6, rate: 16_000 });
    const post = () => postFile({ ...service, key }, clip);
    assert.equal((await post()).statusCode, 200);

    // 6 of 7.2 seconds: a stream may begin, and is closed when it passes them.
    const stream = new StreamClient(url, key, { sample_rate: 8_000 });
    await stream.received(1);
    stream.send(Buffer.alloc(8_000 * 2 * 6));
    assert.deepEqual(await stream.closed, { code: 1008, reason: 'quota_exceeded' });

    const refused = await post();
    assert.ok(Number(refused.headers['retry-after']) > 0);
    const problem = readProblem(refused, 'quota_exceeded');
    assert.equal(problem.limit, 0.002);
    assert.ok(Number(problem.used) >= 0);
    const another = await refusal(streamUrl(url), { headers: { [API_KEY_HEADER]: key } });
    readProblem(another, 'quota_exceeded');
    await problemOf(await client.initiate({}), 'quota_exceeded');
    const whole = { method: 'POST', body: clip };
    await problemOf(await client.call(ASYNCH_PATHS.requests, whole), 'quota_exceeded');
    assert.equal((await postFile(service, clip)).statusCode, 200, 'another owner');
  });

  test('audio_hours: long recordings count when they are processed, and still do when they are deleted', async () => {
    const { client } = await keyOf('long', { owner: 'long', limits: { audio_hours: 0.002 } });
    const { worker, audioHours } = service.services;
    const id = await client.upload(wav({ seconds: 8, rate: 16_000 }));
    worker.start();
    await client.result(id);
    await worker.stop();
    await client.delete(id);
    await problemOf(await client.initiate({}), 'quota_exceeded');
    await audioHours.save();
    assert.equal((await service.stores.ledger.use()).get('long')?.audioSeconds, 8);
    await problemOf(await client.initiate({}), 'quota_exceeded');
  });

  test('a change applies to a running server within seconds', async () => {
    const { client, id } = await keyOf('changing');
    assert.equal((await client.call(ASYNCH_PATHS.requests)).headers.get('ratelimit-limit'), null);
    await service.stores.keys.changeLimits(id, { rate: 60 });
    const limit = async () => (await client.call(ASYNCH_PATHS.requests)).headers.get('ratelimit-limit');
    while ((await limit()) === null) await sleep(100);
    assert.equal(await limit(), '60');
  });
});
