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

/** One answer after another for a while, each of a clip that was with the classifier for `withClassifierMs`. */
function hear(door: Admission, apartMs: number, withClassifierMs: number): void {
  for (let nth = 1; nth <= 100; nth++) door.heard(withClassifierMs, 1_000_000 + nth * apartMs);
}

describe('the door of the discrete interface', () => {
  test('lets in as many as it was told while clips are heard fast', async () => {
    const door = new Admission(66);
    hear(door, 20, 300);
    assert.equal((await fill(door)).inHand, 66);
  });

  test('lets in no more than can be heard within two seconds when the machine is slow', async () => {
    const door = new Admission(66);
    hear(door, 100, 500);
    const { inHand, retryAfter } = await fill(door);
    assert.ok(inHand >= 20 && inHand <= 22, `${inHand} in hand`);
    assert.equal(retryAfter, 3);
  });

  test('does not take rare requests for a slow machine', async () => {
    const door = new Admission(66);
    hear(door, 5_000, 40);
    assert.equal((await fill(door)).inHand, 66);
  });

  test('gives the place back whether the work succeeds or fails', async () => {
    const door = new Admission(1);
    assert.equal(await door.hold(async () => 'heard'), 'heard');
    await assert.rejects(
      door.hold(async () => {
        throw new Error('unreadable');
      }),
    );
    assert.equal(door.inHand, 0);
  });
});
