import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ASYNCH_PATHS, type DetailedResult } from '@undertone/contract';
import { sharedClassifier, testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { problemOf } from '@undertone/testing/problem';
import { wav } from '@undertone/testing/wav';
import { writeResult } from '../../src/recordings/time-line.ts';
import { Clock } from './support/clock.ts';

await sharedClassifier();

/** The JSON of GET /prediction. */
async function predictionOf(client: AsynchClient, id: string, query = ''): Promise<DetailedResult> {
  const response = await client.call(`${ASYNCH_PATHS.prediction}?request_id=${id}${query}`);
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^application\/json/);
  return (await response.json()) as DetailedResult;
}

describe('a result with many elements', () => {
  test('is completed, stored in chunks, and answered in every form', async () => {
    const clock = new Clock();
    const service = await testApp({}, { now: clock.now });
    const client = await AsynchClient.of(service);
    service.services.worker.start();
    // Silent channels are classified once.
    const file = wav({ seconds: 140, rate: 8_000, channels: 8, sound: () => 0 });
    const id = await client.upload(file, 1, { channels: 'separate', interval: 1 });
    const plain = await client.result(id);
    assert.deepEqual(await service.stores.requests.outcome(id), { chunked: true });
    assert.equal(plain.emotions.length, 140 * 8);
    assert.deepEqual(Object.keys(plain.emotions[0] ?? {}), ['t', 'channel', 'emotion', 'confidence']);

    const detailed = await predictionOf(client, id, '&details=true');
    assert.deepEqual(
      detailed.emotions.map(({ t, channel, emotion, confidence }) => ({ t, channel, emotion, confidence })),
      plain.emotions,
    );
    assert.equal(detailed.duration_seconds, 140);
    assert.equal(detailed.segments.length, 8);
    assert.deepEqual([detailed.segments[7]?.start, detailed.segments[7]?.end], [0, 140]);

    const status = await client.call(`/emotion/status/${id}`);
    const { emotions, ...head } = (await status.json()) as { emotions: { start_time: number }[] };
    assert.deepEqual(head, { request_id: id, status: 'completed' });
    assert.equal(emotions.length, 140 * 8);
    assert.equal(emotions.at(-1)?.start_time, 139);

    clock.ms += 24 * 3_600_000;
    await problemOf(await client.prediction(id), 'gone');
  });

  test('is built in pieces, each far smaller than a megabyte', () => {
    const models = { m: { angry: 0.1, happy: 0.2, neutral: 0.3, sad: 0.4 } };
    const steps = Array.from({ length: 20_500 }, (_, i) => ({
      channel: 0,
      startSeconds: i,
      endSeconds: i + 1,
      speechSeconds: i % 2,
      models,
    }));
    const request = {
      id: 'r',
      owner: 'o',
      uploadId: 'u',
      model: 'm',
      intervalSeconds: 1,
      channels: 'mix',
      label: null,
      webhookUrl: null,
      partCount: 1,
      state: 'processing',
      progress: 0,
      durationSeconds: null,
      createdAt: 0,
      expiresAt: 1,
    } as const;
    const { outcome, chunks = [] } = writeResult(request, { steps, seconds: steps.length }, 'open');
    assert.deepEqual(outcome, { chunked: true });
    const texts = { plain: '', detailed: '' };
    for (const { form, text } of chunks) {
      assert.ok(text.length < 500_000, `${text.length} characters`);
      texts[form] += text;
    }
    const [plain, detailed] = [JSON.parse(texts.plain), JSON.parse(texts.detailed)];
    assert.equal(plain.emotions.length, steps.length);
    assert.equal(detailed.emotions.length, steps.length);
    assert.equal(detailed.segments.length, steps.length, 'speech and silence alternate');
    assert.deepEqual(plain.emotions.at(-1), { t: '341:39', emotion: 'sad', confidence: 0.4 });
    assert.equal(detailed.emotions.at(-1).end, steps.length);
  });
});
