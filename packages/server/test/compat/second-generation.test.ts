import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PATHS, type StatusResult } from '@undertone/contract';
import { RateLimitStatus, StatusResult as StatusSchema } from '@undertone/contract/schemas';
import { postFile, readProblem, testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { wav } from '@undertone/testing/wav';
import Value from 'typebox/value';

/** Second-generation clients use other paths over the same store. */
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

test('uploads, goes through every state, and ends in a time line with times in seconds', async () => {
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
  // The same answers as under the main path.
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

test('an unusable recording is failed with the reason', async () => {
  service.services.worker.start();
  const id = await client.upload(wav({ seconds: 2 }));
  await first.settled(id);
  const { status, error, error_code } = await client.status(id);
  assert.deepEqual([status, error_code], ['failed', 'AUDIO_TOO_SHORT']);
  assert.match(error ?? '', /2 s long/);
});

test('an unknown request and another key’s request are 404', async () => {
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

test('/v1/rate-limit shows the limits of a key and their use', async () => {
  const { key } = await service.stores.keys.create('third');
  const get = (path: string) =>
    service.app.inject({ url: PATHS.rateLimit + path, headers: { 'x-api-key': key } });
  await get('/health');
  const status = (await get('/status')).json();
  assert.ok(Value.Check(RateLimitStatus, status));
  assert.equal(status.limits.requests_per_minute, 1000);
  assert.equal(status.limits.max_audio_size_mb, 1024);
  // This request, and the one before it unless the bucket was refilled in between.
  assert.ok([1, 2].includes(status.current_usage.requests_per_minute ?? 0));
  assert.equal(status.current_usage.concurrent_streams, 0);
  const health = (await get('/health')).json();
  assert.equal(health.status, 'healthy');
  assert.ok(Math.abs(health.timestamp - Date.now() / 1_000) < 60);
});

test('a wrong length is repeated under the names that existing clients read', async () => {
  const short = readProblem(await postFile(service, wav({ seconds: 3.9, rate: 16_000 })), 'audio_too_short');
  assert.deepEqual(
    [short.min_duration_seconds, short.max_duration_seconds, short.actual_duration_seconds],
    [4, 10, 3.9],
  );
  assert.deepEqual([short.error_code, short.error], ['AUDIO_TOO_SHORT', short.detail]);
  const long = readProblem(await postFile(service, wav({ seconds: 12, rate: 16_000 })), 'audio_too_long');
  assert.equal(long.error_code, 'AUDIO_TOO_LONG');
});
