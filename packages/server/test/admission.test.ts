import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Admission } from '../src/discrete/admission.ts';

const { promise: never } = Promise.withResolvers<void>();

/** Lets requests in until one is refused; how many there were, and when the refused one is to come back. */
async function fill(door: Admission): Promise<{ inHand: number; retryAfter: number }> {
  for (;;) {
    const refusal = await Promise.race([
      door.hold(() => never).catch((error: { figures: { retry_after_seconds: number } }) => error),
      new Promise<null>((resolve) => setImmediate(resolve, null)),
    ]);
    if (refusal) return { inHand: door.inHand, retryAfter: refusal.figures.retry_after_seconds };
  }
}

/** Clips one after another, each of which takes a thread so long. */
async function hear(door: Admission, threadMs: number, count = 100): Promise<void> {
  for (let nth = 1; nth <= count; nth++) await door.hold(async (heard) => heard(threadMs));
}

describe('the door of the discrete interface', () => {
  test('lets in as many as it was told while clips are heard fast', async () => {
    const door = new Admission(66, 2);
    await hear(door, 40);
    assert.equal((await fill(door)).inHand, 66);
  });

  test('lets in no more than can be heard within two seconds when the machine is slow', async () => {
    const door = new Admission(66, 2);
    await hear(door, 200);
    const { inHand, retryAfter } = await fill(door);
    assert.ok(inHand >= 20 && inHand <= 22, `${inHand} in hand`);
    assert.equal(retryAfter, 3);
  });

  test('counts on all threads', async () => {
    const door = new Admission(66, 8);
    await hear(door, 200);
    assert.equal((await fill(door)).inHand, 66);
  });

  test('does not take one odd clip for a slow machine, and forgets a slow time after a few clips', async () => {
    const odd = new Admission(66, 2);
    await hear(odd, 40);
    await hear(odd, 200, 1);
    assert.equal((await fill(odd)).inHand, 66);
    const recovered = new Admission(66, 2);
    await hear(recovered, 500);
    await hear(recovered, 40);
    assert.equal((await fill(recovered)).inHand, 66);
  });

  test('does not take the first clip of a cold machine for all to come', async () => {
    const door = new Admission(66, 2);
    await hear(door, 600, 1);
    assert.equal((await fill(door)).inHand, 66);
  });

  test('stays open to bodies that are no clips, however slow clips are', async () => {
    const door = new Admission(66, 2);
    await hear(door, 1000);
    for (let nth = 1; nth <= 100; nth++) {
      await assert.rejects(
        door.hold(async () => {
          throw new Error('unreadable');
        }),
      );
    }
    assert.equal((await fill(door)).inHand, 66);
  });

  test('gives the place back whether the work succeeds or fails', async () => {
    const door = new Admission(1, 1);
    assert.equal(await door.hold(async () => 'heard'), 'heard');
    await assert.rejects(
      door.hold(async () => {
        throw new Error('unreadable');
      }),
    );
    assert.equal(door.inHand, 0);
  });
});
