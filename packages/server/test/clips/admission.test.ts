import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Admission } from '../../src/clips/admission.ts';
import type { ProblemError } from '../../src/problems.ts';

const { promise: never } = Promise.withResolvers<void>();
const OPTIONS = { maxWork: 66, maxBytes: 1_000, maxWaitMs: 2_000, expectedWaitMs: () => 0 };

interface FillOptions {
  readonly bytes?: number;
  /** Of request number i; by default each has another key. */
  readonly owner?: (i: number) => string;
  readonly arrives?: boolean;
}

/** Adds requests until one is refused. Returns their number, and the refusal. */
async function fill(
  admission: Admission,
  { bytes, owner = String, arrives = true }: FillOptions = {},
): Promise<{ added: number; refusal: ProblemError }> {
  for (let added = 0; ; added++) {
    const refusal = await Promise.race([
      admission
        .run(owner(added), bytes, ({ arrived }) => {
          if (arrives) arrived();
          return never;
        })
        .catch((error: ProblemError) => error),
      new Promise<null>((resolve) => setImmediate(resolve, null)),
    ]);
    if (refusal) return { added, refusal };
    assert.ok(added < 1_000, 'nothing is refused');
  }
}

const one = () => 'one key';

describe('admission of short recordings', () => {
  test('admits up to the limit of recordings that have arrived', async () => {
    const { added, refusal } = await fill(new Admission(OPTIONS));
    assert.equal(added, 66);
    assert.equal(refusal.code, 'overloaded');
    assert.equal(refusal.message, 'The server is busy. Try again in 1 second.');
  });

  test('refuses requests that would wait more than two seconds, with Retry-After', async () => {
    const admission = new Admission({ ...OPTIONS, expectedWaitMs: (requests) => requests * 100 });
    const { added, refusal } = await fill(admission);
    assert.equal(added, 21);
    assert.equal(refusal.headers['retry-after'], '3');
    assert.equal(refusal.message, 'The server is busy. Try again in 3 seconds.');
  });

  test('bodies that are still arriving are no work and keep nobody out', async () => {
    const admission = new Admission({ ...OPTIONS, maxWork: 2, expectedWaitMs: (requests) => requests * 1e6 });
    const slow = Array.from({ length: 100 }, () => admission.run('slow', 1, () => never));
    assert.equal(admission.inFlight, slow.length);
    const answer = admission.run('another', 100, async ({ arrived }) => {
      arrived();
      return 'answered';
    });
    assert.equal(await answer, 'answered');
  });

  test('a body that arrives when there is too much work is refused then', async () => {
    const admission = new Admission({ ...OPTIONS, maxWork: 1 });
    await admission.run('first', 1, async (first) => {
      const late = admission.run('late', 1, async (reservation) => {
        first.arrived();
        reservation.arrived();
      });
      await assert.rejects(late, { code: 'overloaded' });
    });
  });

  test('one key takes at most three quarters of the places; another one still gets in', async () => {
    const admission = new Admission(OPTIONS);
    assert.equal((await fill(admission, { owner: one })).added, 50);
    assert.equal((await fill(admission)).added, 16);
  });

  test('one key holds at most half of the memory, and more keys always leave room for one more', async () => {
    const admission = new Admission(OPTIONS);
    const arriving = { bytes: 100, arrives: false };
    assert.equal((await fill(admission, { ...arriving, owner: one })).added, 5);
    assert.equal((await fill(admission, { ...arriving, owner: () => 'second key' })).added, 3);
    assert.equal((await fill(admission, { ...arriving, owner: () => 'third key' })).added, 1);
    assert.equal((await fill(admission, { ...arriving, owner: () => 'fourth key' })).added, 1);
  });

  test('reserves the announced length before a byte is read', async () => {
    assert.equal((await fill(new Admission(OPTIONS), { bytes: 300, arrives: false })).added, 3);
  });

  test('refuses a chunked body once it outgrows the free memory', async () => {
    const admission = new Admission(OPTIONS);
    await assert.rejects(
      admission.run('chunked', undefined, async ({ grow }) => {
        grow(400);
        await admission.run('another', 600, async () =>
          assert.throws(() => grow(401), { code: 'overloaded' }),
        );
        grow(500);
        grow(1_000);
      }),
      { code: 'overloaded' },
    );
    assert.equal((await fill(admission, { bytes: 1_000 })).added, 1, 'all of it was given back');
  });

  test('releases its reservation on success and on failure', async () => {
    const admission = new Admission({ ...OPTIONS, maxWork: 1 });
    const run = <T>(work: () => Promise<T>) =>
      admission.run('one key', 1_000, ({ arrived }) => {
        arrived();
        return work();
      });
    assert.equal(await run(async () => 'done'), 'done');
    await assert.rejects(
      run(() => Promise.reject(new Error('unreadable'))),
      /unreadable/,
    );
    assert.equal(await run(async () => 'done again'), 'done again');
    assert.equal(admission.inFlight, 0);
  });
});
