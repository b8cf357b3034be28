import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { type Kind, Slots } from '../src/ffmpeg/slots.ts';

/** Takes slots and records the order in which they were granted. */
function taker(slots: Slots) {
  const got: string[] = [];
  const free = new Map<string, () => void>();
  const take = (kind: Kind, name: string, signal?: AbortSignal) =>
    slots.take(kind, signal).then((leave) => {
      got.push(name);
      free.set(name, leave);
    });
  return { got, take, free: (name: string) => free.get(name)?.() };
}

describe('ffmpeg slots', () => {
  it('are for clips: recordings neither wait nor keep them waiting', async () => {
    const { got, take } = taker(new Slots(1));
    await take('clip', 'c1');
    for (const name of ['r1', 'r2', 'r3']) await take('recording', name);
    void take('clip', 'c2');
    await setImmediate();
    assert.deepEqual(got, ['c1', 'r1', 'r2', 'r3']);
  });

  it('go to waiting clips in order', async () => {
    const { got, take, free } = taker(new Slots(1));
    await take('clip', 'c1');
    void take('clip', 'c2');
    void take('clip', 'c3');
    free('c1');
    await setImmediate();
    assert.deepEqual(got, ['c1', 'c2']);
    free('c2');
    await setImmediate();
    free('c3');
    await take('clip', 'c4');
    assert.deepEqual(got, ['c1', 'c2', 'c3', 'c4']);
  });

  it('refuse the 65th waiting clip', async () => {
    const slots = new Slots(1);
    await slots.take('clip');
    const waiting = Array.from({ length: 64 }, () => slots.take('clip'));
    await assert.rejects(slots.take('clip'), { name: 'AudioError', code: 'overloaded' });
    assert.equal(waiting.length, 64);
  });

  it('are not given to aborted waiters', async () => {
    const { got, take, free } = taker(new Slots(2));
    await take('clip', 'c1');
    await take('clip', 'c2');
    const abort = new AbortController();
    const given = take('clip', 'c3', abort.signal);
    void take('clip', 'c4');
    abort.abort(new Error('gone'));
    await assert.rejects(given, { message: 'gone' });
    await assert.rejects(take('clip', 'c5', abort.signal), { message: 'gone' });
    free('c1');
    await setImmediate();
    assert.deepEqual(got, ['c1', 'c2', 'c4']);
  });
});
