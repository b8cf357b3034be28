import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { findFfmpeg } from '@undertone/audio';
import { Classifier } from '@undertone/classifier';
import { formatTimestamp, MODELS, type ModelId, PATHS } from '@undertone/contract';
import { tempDir, testApp, testEmbedded } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { TEST_MODELS } from '@undertone/testing/paths';
import { problemOf } from '@undertone/testing/problem';
import { longWav, wav, wavHeader } from '@undertone/testing/wav';
import { toResult } from '../../src/index.ts';

const ffmpegPath = await findFfmpeg();
const classifier = await Classifier.start({ modelsDir: TEST_MODELS, workers: 1 });
after(() => classifier.close());
const service = await testApp({}, { classifier, workerTimes: { renewEveryMs: 100 } });
const client = await AsynchClient.of(service);
service.services.worker.start();

/** Real voices, repeated to the requested length. */
async function voices(seconds: number): Promise<Buffer> {
  const names = ['angry-1013', 'happy-1064', 'neutral-1039', 'sad-1028'];
  const folder = new URL('../../../../examples/voices/', import.meta.url);
  const files = await Promise.all(names.map((name) => readFile(new URL(`${name}.wav`, folder))));
  const rate = files[0]?.readUInt32LE(24) ?? 0;
  const speech = Buffer.concat(files.map((file) => file.subarray(44)));
  const bytes = Math.round(seconds * rate) * 2;
  const data = Buffer.concat(Array.from({ length: Math.ceil(bytes / speech.length) }, () => speech));
  return Buffer.concat([
    wavHeader({ rate, channels: 1, bits: 16, dataBytes: bytes }),
    data.subarray(0, bytes),
  ]);
}

/** Predictions straight from the classifier, without uploads, stores and jobs. */
async function directly(file: Uint8Array, model: ModelId, stepSeconds: number) {
  const source = {
    size: file.length,
    async *read(start = 0, end = file.length) {
      yield file.subarray(start, end);
    },
  };
  const { steps } = await classifier.classifyRecording(source, { stepSeconds });
  return steps.map(({ startSeconds, models }) => {
    const { main_emotion: emotion, confidence } = toResult(models[model] ?? {});
    return { t: formatTimestamp(startSeconds), emotion, confidence };
  });
}

describe('a recording', () => {
  const file = voices(33.4);

  test('becomes a time line with the predictions of each window, the last one looking back', async () => {
    const bytes = await file;
    const { emotions, status } = await client.result(await client.upload(bytes, 3));
    assert.equal(status, 'completed');
    assert.deepEqual(
      emotions.map(({ t }) => t),
      ['00:00', '00:05', '00:10', '00:15', '00:20', '00:25', '00:30'],
    );
    assert.deepEqual(emotions, await directly(bytes, '4emotions', 5));
  });

  for (const model of Object.keys(MODELS) as ModelId[]) {
    testEmbedded(`is classified by ${model} on request`, async () => {
      const bytes = await file;
      const { emotions } = await client.result(await client.upload(bytes, 1, { model, interval: 10 }));
      assert.deepEqual(emotions, await directly(bytes, model, 10));
    });
  }

  test('has the same windows wherever its parts end', async () => {
    const bytes = await voices(11);
    const [whole, pieces] = [await client.upload(bytes, 1), await client.upload(bytes, 97)];
    assert.deepEqual((await client.result(pieces)).emotions, (await client.result(whole)).emotions);
  });

  testEmbedded('can have any step from 1 to 60 seconds', async () => {
    const bytes = await file;
    for (const [interval, count] of [
      [1, 34],
      [12, 3],
      [60, 1],
    ] as const) {
      const { emotions } = await client.result(await client.upload(bytes, 2, { interval }));
      assert.equal(emotions.length, count);
      assert.equal(emotions.at(-1)?.t, formatTimestamp((count - 1) * interval));
    }
  });

  testEmbedded('may be 50 ms shorter than 5 s', async () => {
    const { emotions } = await client.result(await client.upload(wav({ seconds: 4.96 })));
    assert.equal(emotions.length, 1);
  });

  test('may have any format that ffmpeg reads, including m4a with its index at the end', async () => {
    assert.ok(ffmpegPath, 'the tests need ffmpeg');
    const dir = await tempDir();
    const source = join(dir, 'in.wav');
    const target = join(dir, 'out.m4a');
    await promisify(execFile)(ffmpegPath, [
      ...['-hide_banner', '-loglevel', 'error', '-f', 'lavfi', '-i', 'sine=300:duration=12', source],
    ]);
    await promisify(execFile)(ffmpegPath, ['-loglevel', 'error', '-i', source, '-c:a', 'aac', target]);
    const { emotions } = await client.result(await client.upload(await readFile(target), 4));
    assert.equal(emotions.length, 3);
  });
});

test('a large MP4 with its index at the end is read in place, across parts, and reports progress', async () => {
  assert.ok(ffmpegPath, 'the tests need ffmpeg');
  const target = join(await tempDir(), 'out.mov');
  const source = 'sine=300:duration=24:sample_rate=192000';
  await promisify(execFile)(ffmpegPath, [
    ...['-loglevel', 'error', '-f', 'lavfi', '-i', source, '-ac', '2', '-c:a', 'pcm_f32le', target],
  ]);
  const file = await readFile(target);
  assert.ok(file.length > 32 * 2 ** 20 && file.indexOf('moov') > file.indexOf('mdat'));
  const id = await client.upload(file, 5);
  const seen = new Set<number>();
  for (
    let response = await client.prediction(id);
    response.status === 202;
    response = await client.prediction(id)
  ) {
    seen.add(((await response.json()) as { progress: number }).progress);
    await sleep(20);
  }
  assert.ok(
    [...seen].some((progress) => progress > 0.01 && progress < 1),
    `only ${[...seen]}`,
  );
  assert.equal((await client.result(id)).emotions.length, 5);
  while ((await service.stores.blobs.groups()).length > 0) await sleep(10);
});

describe('an unusable recording', () => {
  const cases: [string, Promise<Buffer> | Buffer, Parameters<typeof problemOf>[1], RegExp][] = [
    ['too short', wav({ seconds: 4.9 }), 'audio_too_short', /4\.9 s/],
    ['random bytes', randomBytes(100_000), 'unreadable_audio', /./],
    ['sample rate too low', wav({ seconds: 6, rate: 6_000 }), 'sample_rate_too_low', /6000/],
    ['sample rate too high', wav({ seconds: 6, rate: 200_000 }), 'sample_rate_too_high', /200000/],
  ];
  for (const [name, file, code, words] of cases) {
    test(`${name}: fails with a reason, and its audio is erased`, async () => {
      const id = await client.upload(await file, 2);
      const problem = await problemOf(await client.settled(id), code, 422);
      assert.match(problem.detail, words);
      assert.equal(problem.status, 422);
      if (code === 'audio_too_short') {
        assert.deepEqual([problem.min_seconds, problem.actual_seconds], [5, 4.9]);
      }
      while ((await service.stores.blobs.groups()).length > 0) await sleep(10);
      await problemOf(await client.prediction(id), code, 422);
    });
  }

  test('in a format that needs ffmpeg, without ffmpeg: fails as unreadable, with the reason', async () => {
    const bare = await testApp();
    bare.services.worker.start();
    const bareClient = await AsynchClient.of(bare);
    const id = await bareClient.upload(Buffer.concat([Buffer.from('OggS'), randomBytes(5000)]));
    const problem = await problemOf(await bareClient.settled(id), 'unreadable_audio');
    assert.match(problem.detail, /ffmpeg/);
  });
});

describe('during processing', () => {
  /** Half an hour at 8 kHz: a few seconds of work for one thread. */
  const long = longWav(1_800);

  async function processing(id: string): Promise<void> {
    for (;;) {
      const { status } = (await (await client.prediction(id)).json()) as { status: string };
      if (status === 'processing') return;
      assert.equal(status, 'queued');
      await sleep(10);
    }
  }

  test('progress grows, and DELETE cancels the job', async () => {
    const id = await client.upload(long);
    await processing(id);
    let progress = 0;
    while (progress === 0) {
      const response = await client.prediction(id);
      assert.equal(response.status, 202);
      ({ progress } = (await response.json()) as { progress: number });
      await sleep(50);
    }
    assert.ok(progress > 0 && progress < 1);
    assert.equal((await client.delete(id)).status, 204);
    await problemOf(await client.prediction(id), 'not_found');
    assert.deepEqual(await service.stores.blobs.groups(), []);
    const atWork = () => classifier.stats().busy + classifier.stats().queued.asynch;
    while (atWork() > 0) await sleep(10);
  });

  test('a short recording does not wait for a long one', async () => {
    const slow = await client.upload(long);
    await processing(slow);
    const quick = await client.upload(wav({ seconds: 6 }));
    await client.result(quick);
    assert.equal((await client.prediction(slow)).status, 202);
    await client.delete(slow);
  });

  test("the jobs of one key do not keep another key's recording waiting", async () => {
    const { key } = await service.stores.keys.create('another');
    const another = await AsynchClient.of(service, key);
    const theirs = [await client.upload(long), await client.upload(long)];
    const id = await another.upload(wav({ seconds: 6, rate: 16_000 }));
    assert.equal((await another.result(id)).emotions.length, 2);
    for (const one of theirs) {
      assert.equal((await client.prediction(one)).status, 202);
      await client.delete(one);
    }
  });

  test('a stop requeues the request without counting an attempt', async () => {
    const id = await client.upload(long);
    await processing(id);
    await service.services.worker.stop();
    const { status } = (await (await client.prediction(id)).json()) as { status: string };
    assert.equal(status, 'queued');
    const claim = await service.stores.requests.claim({ leaseMs: 1, running: [] });
    assert.deepEqual([claim?.request.id, claim?.failedAttempts], [id, 0]);
    await client.delete(id);
  });
});

testEmbedded('with a full inference queue a recording waits instead of failing', async () => {
  const narrow = await Classifier.start({ modelsDir: TEST_MODELS, workers: 1, queueLimit: 1 });
  after(() => narrow.close());
  const busy = await testApp({ SERVICE_ASYNCH_JOBS: '3' }, { classifier: narrow });
  busy.services.worker.start();
  const busyClient = await AsynchClient.of(busy);
  const ids = await Promise.all([1, 2, 3].map(() => busyClient.upload(wav({ seconds: 21 }))));
  for (const id of ids) assert.equal((await busyClient.result(id)).emotions.length, 5);
});

testEmbedded('metrics cover uploads, jobs and their speed', async () => {
  const text = (await service.app.inject({ url: PATHS.metrics })).body;
  const figure = (name: string) =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(name))
        ?.split(' ')
        .at(-1),
    );
  assert.ok(figure('undertone_uploads_total{event="initiated"}') >= 10);
  assert.ok(figure('undertone_uploads_total{event="completed"}') >= 10);
  assert.ok(figure('undertone_uploads_total{event="deleted"}') >= 2);
  assert.ok(figure('undertone_part_bytes_total') > 10_000_000);
  assert.ok(figure('undertone_asynch_jobs_total{outcome="completed"}') >= 5);
  assert.ok(figure('undertone_asynch_jobs_total{outcome="failed"}') >= 4);
  assert.ok(figure('undertone_asynch_requests{state="completed"}') >= 5);
  assert.ok(figure('undertone_asynch_seconds_per_audio_second_sum') > 0);
  assert.ok(figure('undertone_audio_seconds_total{interface="asynch"}') > 100);
});
