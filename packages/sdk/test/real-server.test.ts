import assert from 'node:assert/strict';
import { createReadStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { ERRORS, formatTimestamp, MODELS } from '@undertone/contract';
import { TEST_MODELS, VOICES } from '@undertone/testing/paths';
import { talkWav } from '@undertone/testing/talk';
import {
  EmotionClient,
  InvalidRequestIdError,
  PredictionFailedError,
  PredictionTimeoutError,
  type Progress,
  RequestFailedError,
  UploadFailedError,
} from '../src/index.ts';
import { MIB, scrambled, temporaryFolder } from './support/clients.ts';
import { type CuttingProxy, cuttingProxy } from './support/cutting-proxy.ts';
import { type RealServer, startRealServer } from './support/real-server.ts';

const SECONDS = 62.5;
const UNKNOWN_ID = '0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10';
/** Polls often, and long enough for a slow machine. */
const QUICK = { interval: 1000, maxTries: 100 };

describe('against the real server', () => {
  let server: RealServer;
  let client: EmotionClient;
  let recording: Buffer;
  before(async () => {
    server = await startRealServer();
    recording = talkWav(SECONDS);
    client = new EmotionClient({ ...server.settings, partSize: MIB });
  });
  after(() => server.stop());

  test('a short recording as a path and as a stream, with any model', async () => {
    const path = join(VOICES, 'angry-1013.wav');
    const four = await client.discrete.emotions(path);
    const seven = await client.discrete.emotions(createReadStream(path), { model: '7emotions' });
    assert.deepEqual(Object.keys(four.all_predictions).sort(), [...MODELS['4emotions']].sort());
    assert.deepEqual(Object.keys(seven.all_predictions).sort(), [...MODELS['7emotions']].sort());
    assert.equal(four.confidence, Math.max(...Object.values(four.all_predictions)));
    assert(four.speechSeconds && four.speechSeconds > 0.5 && four.speechSeconds <= 10);
    assert.deepEqual(Object.keys(four).sort(), ['all_predictions', 'confidence', 'main_emotion']);
  });

  test('samples get the same kind of result', async () => {
    const samples = Float32Array.from({ length: 198_450 }, (_, i) => 0.1 * Math.sin(i / 30));
    const { confidence } = await client.discrete.samples(samples);
    assert(confidence < 0.38, 'a tone is no emotion');
  });

  test('a refused recording has an error with its figures', async () => {
    const short = talkWav(2);
    await assert.rejects(client.discrete.emotions(short), (error) => {
      assert(error instanceof RequestFailedError);
      assert.equal(error.code, 'audio_too_short');
      assert.equal(error.status, ERRORS.audio_too_short.status);
      assert.deepEqual([error.problem?.min_seconds, error.problem?.actual_seconds], [4, 2]);
      assert(error.requestId);
      return true;
    });
  });

  test('upload and emotions of a long file: one element per five seconds', async (t) => {
    const path = join(await temporaryFolder(t), 'talk.wav');
    await writeFile(path, recording);
    const requestId = await client.asynch.upload(path);
    const { emotions, status, request_id } = await client.asynch.emotions(requestId, 100, 1000);
    assert.deepEqual([status, request_id], ['completed', requestId]);
    const expected = Array.from({ length: Math.ceil(SECONDS / 5) }, (_, i) => formatTimestamp(5 * i));
    assert.deepEqual(
      emotions.map(({ t: stamp }) => stamp),
      expected,
    );
    const steps = [];
    for await (const { seconds } of client.asynch.timeline(requestId)) steps.push(seconds);
    assert.equal(steps.at(-1), 60);
  });

  test('classify reports progress and takes a stream, a model and an interval', async () => {
    const told: Progress[] = [];
    const { emotions } = await client.asynch.classify(new Blob([recording]).stream(), {
      ...QUICK,
      model: '7emotions',
      intervalSeconds: 10,
      onProgress: (progress) => told.push(progress),
    });
    assert.deepEqual(
      emotions.map(({ t: stamp }) => stamp),
      ['00:00', '00:10', '00:20', '00:30', '00:40', '00:50', '01:00'],
    );
    assert.equal(told[0]?.status, 'uploading');
    assert.equal(told.at(-1)?.status, 'completed');
  });

  test('the same recording gives the same timeline for any part size', async () => {
    const whole = await client.asynch.classify(recording, { ...QUICK, partSize: 100 * MIB });
    const cut = await client.asynch.classify(new Blob([recording]), { ...QUICK, partSize: MIB });
    assert.deepEqual(whole.emotions, cut.emotions);
  });

  test('a file that is no audio or too short is a failed prediction with its reason', async () => {
    await assert.rejects(client.asynch.classify(talkWav(3), QUICK), (error) => {
      assert(error instanceof PredictionFailedError);
      assert.deepEqual([error.status, error.code, error.problem?.min_seconds], [422, 'audio_too_short', 5]);
      assert.match(error.requestId ?? '', /-/);
      return true;
    });
    await assert.rejects(client.asynch.classify(scrambled(5000), QUICK), PredictionFailedError);
  });

  test('too few polls time out, and the request continues', async () => {
    let requestId = '';
    // Before the upload is completed there cannot be a result, however fast the machine is.
    const askFirst: typeof fetch = async (input, init) => {
      if (String(input).endsWith('/upload/complete')) {
        await assert.rejects(client.asynch.emotions(requestId, 1), PredictionTimeoutError);
      }
      return fetch(input, init);
    };
    await new EmotionClient({ ...server.settings, fetch: askFirst }).asynch.upload(recording, {
      onProgress: (progress) => {
        requestId = progress.requestId ?? '';
      },
    });
    assert.equal((await client.asynch.emotions(requestId, QUICK)).emotions.length, 13);
  });

  test('a deleted request is gone, and other keys never saw it', async () => {
    const requestId = await client.asynch.upload(recording);
    const somebodyElse = new EmotionClient({ ...server.settings, apiKey: 'somebody-elses-key' });
    await assert.rejects(somebodyElse.asynch.emotions(requestId), {
      name: 'AuthenticationError',
      status: 401,
    });
    await client.asynch.delete(requestId);
    await assert.rejects(client.asynch.emotions(requestId), InvalidRequestIdError);
    // Deleting it again is 404 before version 2.0, 204 from it on.
    await client.asynch.delete(requestId).catch((error) => assert(error instanceof InvalidRequestIdError));
    await assert.rejects(client.asynch.delete(UNKNOWN_ID), InvalidRequestIdError);
  });

  test('an aborted upload can be resumed until it is deleted', async () => {
    const aborter = new AbortController();
    let requestId = '';
    const onProgress = (progress: Progress) => {
      requestId = progress.requestId ?? '';
      aborter.abort();
    };
    await assert.rejects(client.asynch.upload(recording, { signal: aborter.signal, onProgress }), {
      name: 'AbortError',
    });
    const { requests } = await client.asynch.list();
    assert.equal(requests.find((request) => request.request_id === requestId)?.status, 'uploading');
    await client.asynch.delete(requestId);
    await assert.rejects(client.asynch.emotions(requestId), InvalidRequestIdError);
  });

  test('models lists the models of the server', async () => {
    const { models, weights } = await client.models();
    assert.deepEqual(
      models.map(({ id }) => id),
      Object.keys(MODELS),
    );
    assert.equal(weights.id, 'research');
  });
});

describe('against the real server, over a network that cuts connections', () => {
  let proxy: CuttingProxy;
  let server: RealServer;
  before(async () => {
    proxy = await cuttingProxy(() => server.settings.baseUrl, { cuts: 4, afterBytes: 400_000 });
    server = await startRealServer({
      SERVICE_PUBLIC_URL: proxy.origin,
      SERVICE_WORKERS: '1',
      SERVICE_MODELS_DIR: TEST_MODELS,
    });
  });
  after(async () => {
    await proxy.stop();
    await server.stop();
  });

  test('the recording arrives intact: the timeline is the same as without cuts', async () => {
    const recording = talkWav(100);
    const cut = new EmotionClient({
      ...server.settings,
      baseUrl: proxy.origin,
      partSize: MIB,
      logLevel: 'error',
    });
    const disturbed = await cut.asynch.classify(recording, QUICK);
    assert.equal(proxy.cuts, 4);
    const undisturbed = await cut.asynch.classify(recording, QUICK);
    assert.deepEqual(disturbed.emotions, undisturbed.emotions);
  });

  test('without retries it is a clear error', async () => {
    proxy.cuts = 0;
    const cut = new EmotionClient({
      ...server.settings,
      baseUrl: proxy.origin,
      partSize: MIB,
      logLevel: 'error',
    });
    await assert.rejects(cut.asynch.upload(talkWav(100), { maxRetries: 0 }), (error) => {
      assert(error instanceof UploadFailedError);
      assert.equal(error.code, 'connection_failed');
      return true;
    });
  });
});
