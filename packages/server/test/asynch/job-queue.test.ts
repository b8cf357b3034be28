import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { Job, JobQueue } from '../../src/asynch/stores/job-queue.ts';
import { Clock, jobQueues, type Opened } from './support/stores.ts';

const LEASE = 10_000;

for (const { name, fresh } of jobQueues) {
  describe(`jobs in ${name}`, () => {
    let clock: Clock;
    let queue: JobQueue;
    let other: JobQueue;
    let opened: Opened<JobQueue>;

    beforeEach(async () => {
      clock = new Clock();
      opened = await fresh(clock);
      queue = opened.open();
      other = opened.open();
    });
    afterEach(() => opened.close());

    async function claim(from = queue): Promise<Job> {
      const job = await from.claim(LEASE);
      assert.ok(job);
      return job;
    }

    test('jobs are given out first come, first served, and to one worker each', async () => {
      for (const id of ['a', 'b', 'c']) {
        await queue.add(id);
        clock.ms++;
      }
      assert.equal(await queue.waiting(), 3);
      assert.deepEqual(
        [await claim(), await claim(other), await claim()].map(({ requestId }) => requestId),
        ['a', 'b', 'c'],
      );
      assert.equal(await other.claim(LEASE), null);
      assert.equal(await queue.waiting(), 0);
    });

    test('adding a job again changes nothing, whether it waits or is held', async () => {
      await queue.add('a');
      await queue.add('a');
      await claim();
      await other.add('a');
      assert.equal(await other.claim(LEASE), null);
    });

    test('a lease that is renewed stays, one that is not is a death', async () => {
      await queue.add('a');
      const job = await claim();
      clock.ms += LEASE - 1;
      assert.equal(await queue.renew(job, LEASE), true);
      clock.ms += LEASE;
      assert.deepEqual(await other.releaseDead(), []);
      clock.ms += 1;
      assert.deepEqual(await other.releaseDead(), [job]);
      assert.deepEqual(await other.releaseDead(), []);
      assert.equal(await queue.renew(job, LEASE), false);
      const again = await claim(other);
      assert.equal(again.deaths, 1);
      assert.notEqual(again.lease, job.lease);
    });

    test('a process does not take its own workers for dead, however late it is', async () => {
      await queue.add('a');
      const job = await claim();
      clock.ms += 100 * LEASE;
      assert.deepEqual(await queue.releaseDead(), []);
      assert.equal(await queue.renew(job, LEASE), true);
      assert.deepEqual(await other.releaseDead(), []);
    });

    test('deaths add up; a job given back in peace does not count', async () => {
      await queue.add('a');
      await queue.release(await claim(), { died: false });
      assert.equal((await claim(other)).deaths, 0);
      clock.ms += LEASE + 1;
      await queue.releaseDead();
      await queue.release(await claim(), { died: true });
      assert.equal((await claim()).deaths, 2);
    });

    test('whoever lost a lease cannot release the one that followed', async () => {
      await queue.add('a');
      const late = await claim();
      clock.ms += LEASE + 1;
      await other.releaseDead();
      await claim(other);
      await queue.release(late, { died: true });
      assert.equal(await queue.claim(LEASE), null);
    });

    test('a job that is removed is gone, held or not', async () => {
      await queue.add('a');
      await queue.add('b');
      const job = await claim();
      await other.remove('a');
      await other.remove('b');
      await other.remove('never there');
      assert.equal(await queue.renew(job, LEASE), false);
      assert.equal(await queue.claim(LEASE), null);
    });
  });
}
