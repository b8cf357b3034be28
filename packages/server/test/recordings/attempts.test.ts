// What happens to a recording whose processing fails, and to those behind it.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Classifier, WorkerFailedError } from '@undertone/classifier';
import { sharedClassifier, testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { problemOf } from '@undertone/testing/problem';
import { wav } from '@undertone/testing/wav';
import { StoreUnavailableError } from '../../src/stores/errors.ts';
import { Clock } from './support/clock.ts';

const file = wav({ seconds: 6, rate: 16_000 });

// Started here, so that its threads do not belong to the first test.
await sharedClassifier();

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
