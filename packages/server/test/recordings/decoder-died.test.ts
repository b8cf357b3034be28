import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Classifier } from '@undertone/classifier';
import { tempDir, testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
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
