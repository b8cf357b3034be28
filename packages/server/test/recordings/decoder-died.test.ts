import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { Classifier } from '@undertone/classifier';
import { tempDir, testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { killDecoders } from '@undertone/testing/kill-decoders';
import { TEST_MODELS } from '@undertone/testing/paths';

const QUICK = { pollMs: 20, pauseMs: 20, renewEveryMs: 50, attemptDelaysMs: [20, 20] };

describe('when ffmpeg dies', () => {
  const SECONDS = 60;

  async function start() {
    const classifier = await Classifier.start({ modelsDir: TEST_MODELS, workers: 1 });
    after(() => classifier.close());
    const service = await testApp({}, { classifier, workerTimes: QUICK });
    service.services.worker.start();
    const client = await AsynchClient.of(service);
    const mp3 = join(await tempDir(), 'long.mp3');
    const source = `sine=300:duration=${SECONDS}:sample_rate=48000`;
    await promisify(execFile)('ffmpeg', ['-loglevel', 'error', '-f', 'lavfi', '-i', source, mp3]);
    return { service, client, id: await client.upload(await readFile(mp3), 1, { interval: 10 }) };
  }

  test('the recording is processed again, and its result has all of it', async () => {
    const { service, client, id } = await start();
    await killDecoders(process.pid, 2);
    assert.equal((await client.result(id)).emotions.length, SECONDS / 10);
    assert.equal(Math.round((await service.stores.requests.find(id))?.durationSeconds ?? 0), SECONDS);
  });
});
