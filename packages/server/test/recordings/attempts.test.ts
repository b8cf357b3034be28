// What happens to a recording whose processing fails, and to those behind it.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { DecoderDiedError } from '@undertone/audio';
import { Classifier, WorkerFailedError } from '@undertone/classifier';
import { postFile, readProblem, sharedClassifier, tempDir, testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { problemOf } from '@undertone/testing/problem';
import { wav } from '@undertone/testing/wav';
import { StoreUnavailableError } from '../../src/stores/errors.ts';
import { Clock } from './support/clock.ts';

const QUICK = { pollMs: 20, pauseMs: 20, renewEveryMs: 50, attemptDelaysMs: [20, 20], postponeMs: 20 };
const file = wav({ seconds: 6, rate: 16_000 });

/** The real classifier, except that the test decides how long recordings end. */
async function failing(error: () => Error): Promise<Classifier> {
  return new Proxy(await sharedClassifier(), {
    get: (target, name) => {
      if (name === 'classifyRecording') return async () => Promise.reject(error());
      const value = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

describe('when ffmpeg dies', () => {
  const SECONDS = 60;

  async function start() {
    const classifier = await Classifier.start({ workers: 1 });
    after(() => classifier.close());
    const service = await testApp({}, { classifier, workerTimes: QUICK });
    service.services.worker.start();
    const client = await AsynchClient.of(service);
    const mp3 = join(await tempDir(), 'long.mp3');
    const source = `sine=300:duration=${SECONDS}:sample_rate=48000`;
    await promisify(execFile)('ffmpeg', ['-loglevel', 'error', '-f', 'lavfi', '-i', source, mp3]);
    return { service, client, id: await client.upload(await readFile(mp3), 1, { interval: 10 }) };
  }

  /** Kills this many of our ffmpeg processes, one after the other. */
  async function kill(count: number): Promise<void> {
    const killed = new Set<number>();
    while (killed.size < count) {
      for (const pid of await ffmpegsOf(process.pid)) {
        if (killed.has(pid)) continue;
        await sleep(50); // in mid-recording
        process.kill(pid, 'SIGKILL');
        killed.add(pid);
      }
      await sleep(2);
    }
  }

  test('the recording is processed again, and its result has all of it', async () => {
    const { service, client, id } = await start();
    await kill(2);
    assert.equal((await client.result(id)).emotions.length, SECONDS / 10);
    assert.equal(Math.round((await service.stores.requests.find(id))?.durationSeconds ?? 0), SECONDS);
  });

  test('three times, the recording fails with a reason, never with part of a result', async () => {
    const { client, id } = await start();
    await kill(3);
    const problem = await problemOf(await client.settled(id), 'processing_failed');
    assert.match(problem.detail, /failed 3 times.*Convert the recording to WAV/);
  });

  test('over a short recording, the answer is 503 with the time to wait', async () => {
    const classifier = new Proxy(await sharedClassifier(), {
      get: (target, name) => {
        if (name === 'classifyClip') return async () => Promise.reject(new DecoderDiedError());
        const value = Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const response = await postFile(await testApp({}, { classifier }), file);
    assert.match(readProblem(response, 'overloaded').detail, /ffmpeg.*stopped unexpectedly\. Try again/);
    assert.ok(Number(response.headers['retry-after']) > 0);
  });
});

test('a recording that cannot be read fails after three attempts, and those behind it do not wait', async () => {
  const service = await testApp({ SERVICE_ASYNCH_JOBS: '1' }, { workerTimes: QUICK });
  const client = await AsynchClient.of(service);
  const unreadable = await client.upload(file);
  const folder = (await readdir(service.dataDir, { recursive: true })).find((name) =>
    name.endsWith(unreadable),
  );
  const [part = ''] = await readdir(join(service.dataDir, folder ?? ''));
  const path = join(service.dataDir, folder ?? '', part);
  await rm(path);
  await symlink('/proc/self/mem', path); // reading its first byte is a real EIO, for root too
  const behind = await client.upload(file);
  service.services.worker.start();
  assert.equal((await client.result(behind)).emotions.length, 2);
  const problem = await problemOf(await client.settled(unreadable), 'processing_failed');
  assert.match(problem.detail, /3 times/);
});

describe('before another attempt', () => {
  /** Processes one recording that always fails, by a clock that the test sets. Returns how often it was tried. */
  async function start(error: () => Error) {
    const clock = new Clock();
    let times = 0;
    const classifier = await failing(() => {
      times++;
      return error();
    });
    const workerTimes = { pollMs: 5, pauseMs: 5 };
    const service = await testApp({}, { classifier, workerTimes, now: clock.now });
    const client = await AsynchClient.of(service);
    const id = await client.upload(file);
    service.services.worker.start();
    /** Waits until it was tried this often and is queued again. */
    async function tried(count: number): Promise<void> {
      const isQueued = async () => (await service.stores.requests.find(id))?.state === 'queued';
      while (times < count || !(await isQueued())) await sleep(2);
      assert.equal(times, count);
    }
    /** Nothing happens for all but a millisecond of this time. */
    async function waits(ms: number): Promise<void> {
      const before = times;
      clock.ms += ms - 1;
      await sleep(50);
      assert.equal(times, before, `tried again before ${ms} ms`);
      clock.ms += 1;
    }
    return { client, id, tried, waits };
  }

  test('a failed recording waits 5 seconds, then a minute', async () => {
    const { client, id, tried, waits } = await start(() => new WorkerFailedError('lost twice'));
    await tried(1);
    await waits(5_000);
    await tried(2);
    await waits(60_000);
    await problemOf(await client.settled(id), 'processing_failed');
  });

  test('one whose store is unavailable waits a second, doubled each time up to a minute', async () => {
    const { client, id, tried, waits } = await start(() => new StoreUnavailableError('its disk has errors'));
    for (const [index, seconds] of [1, 2, 4, 8, 16, 32, 60, 60].entries()) {
      await tried(index + 1);
      await waits(seconds * 1_000);
    }
    assert.equal((await client.prediction(id)).status, 202, 'no attempt is counted');
  });
});

/** Processes named ffmpeg among the descendants of a process. */
async function ffmpegsOf(ancestor: number): Promise<number[]> {
  const parents = new Map<number, number>();
  const found: number[] = [];
  for (const name of await readdir('/proc')) {
    const stat = /^\d+$/.test(name) ? await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '') : '';
    const [, command, parent] = /\((.*)\) [A-Y] (\d+)/.exec(stat) ?? [];
    parents.set(Number(name), Number(parent));
    if (command === 'ffmpeg') found.push(Number(name));
  }
  const descends = (pid: number): boolean =>
    pid === ancestor || (parents.has(pid) && descends(parents.get(pid) ?? 0));
  return found.filter(descends);
}
