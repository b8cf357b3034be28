import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PATHS, type StatusResult } from '@undertone/contract';
import { RateLimitStatus, StatusResult as StatusSchema } from '@undertone/contract/schemas';
import { readProblem, testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { wav } from '@undertone/testing/wav';
import Value from 'typebox/value';

/** The second generation of existing clients: other paths over the same store. */
class SecondGeneration extends AsynchClient {
  override readonly base: string;

  constructor(url: string, key: string) {
    super(url, key);
    this.base = url + PATHS.asynchEmotion;
  }

  async status(requestId: string, query = ''): Promise<StatusResult> {
    const response = await this.call(`/status/${requestId}${query}`);
    const text = await response.text();
    assert.equal(response.status, 200, text);
    const status = JSON.parse(text);
    assert.ok(Value.Check(StatusSchema, status), text);
    return status;
  }
}

const service = await testApp({ SERVICE_RATE_LIMIT: '1000' });
const { url } = await service.listen();
const client = new SecondGeneration(url, service.key);
const first = new AsynchClient(url, service.key);

test('upload, every state, and a time line with times in seconds', async () => {
  const upload = await client.send(wav({ seconds: 12 }), 2);
  assert.equal((await client.status(upload.request_id)).status, 'initiated');
  assert.equal((await client.complete(upload)).status, 200);
  assert.equal((await client.status(upload.request_id)).status, 'upload_completed');
  service.services.worker.start();
  const { emotions: plain } = await first.result(upload.request_id);
  const { status, emotions = [] } = await client.status(upload.request_id);
  assert.equal(status, 'completed');
  assert.deepEqual(
    emotions.map(({ start_time, timestamp, end_time }) => [start_time, timestamp, end_time]),
    [
      [0, 2.5, 5],
      [5, 7.5, 10],
      [10, 11, 12],
    ],
  );
  // The same answers as under the first generation's path, which shows nothing more than before.
  assert.deepEqual(
    emotions.map(({ t, emotion, confidence }) => ({ t, emotion, confidence })),
    plain,
  );
  assert.ok(emotions.every((element) => !('all_predictions' in element)));
});

test('comprehensive_output adds the confidence of every emotion', async () => {
  service.services.worker.start();
  const id = await client.upload(wav({ seconds: 6 }), 1, { model: '7emotions' });
  await first.result(id);
  const { emotions = [] } = await client.status(id, '?comprehensive_output=true');
  assert.equal(emotions.length, 2);
  for (const { emotion, confidence, all_predictions = {} } of emotions) {
    assert.equal(Object.keys(all_predictions).length, 7);
    assert.equal((all_predictions as Record<string, number>)[emotion], confidence);
  }
});

test('a recording that cannot be used is failed, with the reason', async () => {
  service.services.worker.start();
  const id = await client.upload(wav({ seconds: 2 }));
  await first.settled(id);
  const { status, error, error_code } = await client.status(id);
  assert.deepEqual([status, error_code], ['failed', 'AUDIO_TOO_SHORT']);
  assert.match(error ?? '', /2 s long/);
});

test('an unknown request, and one of another key, are 404', async () => {
  const { key } = await service.stores.keys.create('other');
  const { request_id } = await client.send(wav({ seconds: 5 }), 1);
  for (const response of [
    await client.call('/status/00000000-0000-4000-8000-000000000000'),
    await new SecondGeneration(url, key).call(`/status/${request_id}`),
  ]) {
    assert.equal(response.status, 404);
  }
  readProblem(
    await service.app.inject({ url: `${PATHS.asynchEmotion}/status/1`, headers: { 'x-api-key': key } }),
    'bad_request',
  );
});

test('the limits of a key, and what it uses of them', async () => {
  const { key } = await service.stores.keys.create('third');
  const get = (path: string) =>
    service.app.inject({ url: PATHS.rateLimit + path, headers: { 'x-api-key': key } });
  await get('/health');
  const status = (await get('/status')).json();
  assert.ok(Value.Check(RateLimitStatus, status));
  assert.equal(status.limits.requests_per_minute, 1000);
  assert.equal(status.limits.max_audio_size_mb, 1024);
  // This very request, and the one before it if the bucket has not been refilled since.
  assert.ok([1, 2].includes(status.current_usage.requests_per_minute ?? 0));
  assert.equal(status.current_usage.concurrent_streams, 0);
  const health = (await get('/health')).json();
  assert.equal(health.status, 'healthy');
  assert.ok(Math.abs(health.timestamp - Date.now() / 1_000) < 60);
});
