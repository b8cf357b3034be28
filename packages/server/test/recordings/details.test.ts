import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import {
  type AsynchResult,
  type DetailedElement,
  type DetailedResult,
  MIN_SPEECH_SECONDS,
  PATHS,
  type StatusResult,
} from '@undertone/contract';
import { AsynchResult as AsynchResultSchema } from '@undertone/contract/schemas';
import { testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { problemOf } from '@undertone/testing/problem';
import { stereoCall } from '@undertone/testing/stereo-call';
import { wav, wavHeader } from '@undertone/testing/wav';
import Value from 'typebox/value';
import { Segments } from '../../src/recordings/time-line.ts';

const service = await testApp();
const client = await AsynchClient.of(service);
service.services.worker.start();

async function detailed(requestId: string): Promise<DetailedResult> {
  await client.result(requestId);
  const response = await client.call(`/prediction?request_id=${requestId}&details=true`);
  const result = (await response.json()) as DetailedResult;
  assert.equal(response.status, 200);
  assert.ok(Value.Check(AsynchResultSchema, result));
  return result;
}

describe('details=true', () => {
  test('adds times, speech and all probabilities to every step, and a description of the recording', async () => {
    const id = await client.upload(wav({ seconds: 12.4 }), 2, { model: '5emotions' });
    const { emotions: plain, ...rest } = await client.result(id);
    assert.deepEqual(Object.keys(rest), ['request_id', 'status']);
    const result = await detailed(id);
    assert.deepEqual(
      [result.model, result.weights, result.duration_seconds],
      ['5emotions', 'research', 12.4],
    );
    assert.ok(Math.abs(Date.parse(result.expires_at) - Date.now() - 86_400_000) < 60_000);
    assert.deepEqual(
      result.emotions.map(({ start, end }) => [start, end]),
      [
        [0, 5],
        [5, 10],
        [10, 12.4],
      ],
    );
    for (const [i, element] of result.emotions.entries()) {
      const { t, emotion, confidence, start, end, speech, speech_seconds, all_predictions } = element;
      assert.deepEqual({ t, emotion, confidence }, plain[i]);
      assert.equal(Object.keys(all_predictions).length, 5);
      assert.equal(all_predictions[emotion], confidence);
      assert.ok(speech_seconds >= 0 && speech_seconds <= end - start);
      assert.equal(speech, speech_seconds >= MIN_SPEECH_SECONDS);
      assert.equal('channel' in element, false);
    }
    assert.equal(result.segments.at(-1)?.end, 12.4);
  });

  test('marks voices as speech, and silence as no speech', async () => {
    const silence = await detailed(await client.upload(wav({ seconds: 10, sound: () => 0 })));
    assert.ok(silence.emotions.every(({ speech, confidence }) => !speech && confidence < 0.38));
    assert.equal(silence.segments.length, 1);
    assert.equal(silence.segments[0]?.emotion, null);
    const file = await readFile(new URL('../../../../examples/voices/sad-1016.wav', import.meta.url));
    const sound = file.subarray(44);
    const rate = file.readUInt32LE(24);
    const voice = Buffer.concat([
      wavHeader({ rate, channels: 1, bits: 16, dataBytes: 3 * sound.length }),
      ...[sound, sound, sound],
    ]);
    const { emotions } = await detailed(await client.upload(voice));
    assert.ok(emotions.every(({ speech }) => speech));
  });

  test('changes neither pending nor failed answers', async () => {
    const { request_id } = await client.send(wav({ seconds: 5 }), 1);
    const path = `/prediction?details=true&request_id=`;
    assert.equal((await client.call(path + request_id)).status, 202);
    const failed = await client.upload(wav({ seconds: 4 }));
    await client.settled(failed);
    await problemOf(await client.call(path + failed), 'audio_too_short', 422);
    await problemOf(await client.call(`/prediction?details=maybe&request_id=${failed}`), 'bad_request');
  });
});

test('segments join neighbouring steps of a channel with the same emotion; without speech it is null', () => {
  const step = (start: number, channel: number, emotion: string, speech_seconds: number, confidence = 0.5) =>
    ({
      start,
      end: start + 5,
      channel,
      emotion,
      speech_seconds,
      speech: speech_seconds >= 0.5,
      confidence,
    }) as DetailedElement;
  const joined = new Segments();
  joined.add([
    step(0, 0, 'angry', 4, 0.9),
    step(0, 1, 'sad', 0.1, 0.3),
    step(5, 0, 'angry', 3, 0.7),
    step(5, 1, 'angry', 0.2, 0.3),
    step(10, 0, 'sad', 0, 0.26),
    step(10, 1, 'sad', 4.5, 0.8),
    step(15, 0, 'angry', 5, 0.9),
    step(15, 1, 'sad', 4.5, 0.6),
  ]);
  assert.deepEqual([...joined.batches()].flat(), [
    { channel: 0, start: 0, end: 10, emotion: 'angry', confidence: 0.8, speech_seconds: 7 },
    { channel: 1, start: 0, end: 10, emotion: null, confidence: 0.3, speech_seconds: 0.3 },
    { channel: 0, start: 10, end: 15, emotion: null, confidence: 0.26, speech_seconds: 0 },
    { channel: 1, start: 10, end: 20, emotion: 'sad', confidence: 0.7, speech_seconds: 9 },
    { channel: 0, start: 15, end: 20, emotion: 'angry', confidence: 0.9, speech_seconds: 5 },
  ]);
});

describe('channels=separate', () => {
  const call = stereoCall(120);

  test('tells an angry speaker from a sad one; channels=mix equals a mono mix', async () => {
    const { file, left, right } = await call;
    const id = await client.upload(file, 2, { channels: 'separate' });
    const { emotions } = await client.result(id);
    assert.deepEqual(
      emotions.slice(0, 4).map(({ t, channel }) => [t, channel]),
      [
        ['00:00', 0],
        ['00:00', 1],
        ['00:05', 0],
        ['00:05', 1],
      ],
    );
    const result = await detailed(id);
    assert.deepEqual(
      result.emotions.map(({ t, channel }) => [t, channel]),
      emotions.map(({ t, channel }) => [t, channel]),
    );
    for (const [channel, expected] of [
      [0, 'angry'],
      [1, 'sad'],
    ] as const) {
      const spoken = result.emotions.filter((element) => element.channel === channel && element.speech);
      const right = spoken.filter(({ emotion }) => emotion === expected);
      assert.ok(spoken.length >= 8, `${spoken.length} steps of ${expected} with speech`);
      assert.ok(right.length >= 0.9 * spoken.length, `${right.length} of ${spoken.length} are ${expected}`);
      assert.ok(
        result.emotions.some((element) => element.channel === channel && !element.speech),
        'no speech while the other one talks',
      );
    }
    // A mix is identical to a mono file of the mixed audio.
    const mixed = await client.result(await client.upload(file));
    const mono = await client.result(await client.upload(mixOf(left, right)));
    assert.deepEqual(mixed.emotions, mono.emotions);
    assert.ok(mixed.emotions.every((element) => !('channel' in element)));
  });

  test('of a mono file: channel 0 only, with the same predictions', async () => {
    const { emotions } = await client.result(
      await client.upload(wav({ seconds: 11 }), 1, { channels: 'separate' }),
    );
    const whole = await client.result(await client.upload(wav({ seconds: 11 })));
    assert.deepEqual(
      emotions,
      whole.emotions.map(({ t, ...rest }) => ({ t, channel: 0, ...rest })),
    );
  });

  test('more than eight channels fail with both numbers; an unknown value is a bad request', async () => {
    const many = wav({ seconds: 5, rate: 8_000, channels: 9 });
    const id = await client.upload(many, 1, { channels: 'separate' });
    const problem = await problemOf(await client.settled(id), 'unreadable_audio');
    assert.deepEqual([problem.max_channels, problem.actual_channels], [8, 9]);
    assert.equal((await client.settled(await client.upload(many))).status, 200);
    await problemOf(await client.initiate({ channels: 'both' }), 'bad_request');
  });

  test('is in the status for the second generation of clients too', async () => {
    const id = await client.upload(wav({ seconds: 5, channels: 2 }), 1, { channels: 'separate' });
    await client.result(id);
    const { url } = await service.listen();
    const headers = { 'x-api-key': service.key };
    const response = await fetch(`${url}${PATHS.asynchEmotion}/status/${id}`, { headers });
    const { emotions = [] } = (await response.json()) as StatusResult;
    assert.deepEqual(
      emotions.map(({ channel, start_time }) => [channel, start_time]),
      [
        [0, 0],
        [1, 0],
      ],
    );
  });
});

/** Mixes like the decoder, in 32-bit floats. */
function mixOf(left: Int16Array, right: Int16Array): Buffer {
  const mixed = Float32Array.from(left, (value, i) => (value / 32_768 + (right[i] ?? 0) / 32_768) * 0.5);
  const header = wavHeader({ format: 3, rate: 16_000, channels: 1, bits: 32, dataBytes: mixed.byteLength });
  return Buffer.concat([header, Buffer.from(mixed.buffer)]);
}

test('without details the answer has exactly the specified fields', async () => {
  const id = await client.upload(wav({ seconds: 5 }));
  const { emotions } = await client.result(id);
  const text = await (await client.prediction(id)).text();
  const expected: AsynchResult = { request_id: id, status: 'completed', emotions };
  assert.equal(text, JSON.stringify(expected));
  assert.deepEqual(Object.keys(emotions[0] ?? {}), ['t', 'emotion', 'confidence']);
});
