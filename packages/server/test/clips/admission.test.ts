import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Admission } from '../../src/clips/admission.ts';
import type { ProblemError } from '../../src/problems.ts';

const { promise: never } = Promise.withResolvers<void>();
const OPTIONS = { maxInFlight: 66, maxBytes: 1_000, maxWaitMs: 2_000, expectedWaitMs: () => 0 };

/** Adds requests until one is refused. Returns their number, and the refusal. */
async function fill(
  admission: Admission,
  bytes?: number,
): Promise<{ inFlight: number; refusal: ProblemError }> {
  for (;;) {
    const refusal = await Promise.race([
      admission.run(bytes, () => never).catch((error: ProblemError) => error),
      new Promise<null>((resolve) => setImmediate(resolve, null)),
    ]);
    if (refusal) return { inFlight: admission.inFlight, refusal };
  }
}

describe('admission of short recordings', () => {
  test('admits up to the limit of requests in flight', async () => {
    const { inFlight, refusal } = await fill(new Admission(OPTIONS));
    assert.equal(inFlight, 66);
    assert.equal(refusal.code, 'overloaded');
    assert.equal(refusal.message, 'The server is busy. Try again in 1 second.');
  });

  test('refuses requests that would wait more than two seconds, with Retry-After', async () => {
    const admission = new Admission({ ...OPTIONS, expectedWaitMs: (requests) => requests * 100 });
    const { inFlight, refusal } = await fill(admission);
    assert.equal(inFlight, 21);
    assert.equal(refusal.headers['retry-after'], '3');
    assert.equal(refusal.message, 'The server is busy. Try again in 3 seconds.');
  });

  test('reserves the announced length before a byte is read', async () => {
    assert.equal((await fill(new Admission(OPTIONS), 300)).inFlight, 3);
  });

  test('refuses a chunked body once it outgrows the free memory', async () => {
    const admission = new Admission(OPTIONS);
    await assert.rejects(
      admission.run(undefined, async ({ grow }) => {
        grow(600);
        await admission.run(400, async () => assert.throws(() => grow(601), { code: 'overloaded' }));
        grow(1_000);
        grow(1_001);
      }),
      { code: 'overloaded' },
    );
    assert.equal((await fill(admission, 1_000)).inFlight, 1, 'all of it was given back');
  });

  test('releases its reservation on success and on failure', async () => {
    const admission = new Admission({ ...OPTIONS, maxInFlight: 1 });
    assert.equal(await admission.run(1_000, async () => 'done'), 'done');
    await assert.rejects(
      admission.run(1_000, () => Promise.reject(new Error('unreadable'))),
      /unreadable/,
    );
    assert.equal(await admission.run(1_000, async () => 'done again'), 'done again');
    assert.equal(admission.inFlight, 0);
  });
});
