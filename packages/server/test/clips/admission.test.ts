import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Admission } from '../../src/clips/admission.ts';
import type { ProblemError } from '../../src/problems.ts';

const { promise: never } = Promise.withResolvers<void>();
const OPTIONS = { maxInFlight: 66, maxBytes: 1_000, maxWaitMs: 2_000, expectedWaitMs: () => 0 };

/** Lets requests in until one is refused; how many there were, and when the refused one is to come back. */
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

describe('admission to the discrete interface', () => {
  test('is given to as many as may be in flight', async () => {
    const { inFlight, refusal } = await fill(new Admission(OPTIONS));
    assert.equal(inFlight, 66);
    assert.equal(refusal.code, 'overloaded');
    assert.equal(refusal.message, 'The server is busy. Try again in 1 second.');
  });

  test('is given to no more than would be answered within two seconds, and says when to come back', async () => {
    const admission = new Admission({ ...OPTIONS, expectedWaitMs: (requests) => requests * 100 });
    const { inFlight, refusal } = await fill(admission);
    assert.equal(inFlight, 21);
    assert.equal(refusal.headers['retry-after'], '3');
    assert.equal(refusal.message, 'The server is busy. Try again in 3 seconds.');
  });

  test('is given by the announced length, before a byte is read, while there is memory', async () => {
    assert.equal((await fill(new Admission(OPTIONS), 300)).inFlight, 3);
  });

  test('of a body without a length ends when it has grown to what is left', async () => {
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

  test('is given back whether the work succeeds or fails', async () => {
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
