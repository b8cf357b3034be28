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
  it('are never all taken by long recordings', async () => {
    const { got, take } = taker(new Slots(4));
    for (const name of ['r1', 'r2', 'r3', 'r4']) void take('recording', name);
    await take('clip', 'c1');
    await take('clip', 'c2');
    assert.deepEqual(got, ['r1', 'r2', 'c1', 'c2']);
  });

  it('go to waiting clips before waiting recordings', async () => {
    const { got, take, free } = taker(new Slots(2));
    await take('recording', 'r1');
    await take('clip', 'c1');
    void take('recording', 'r2');
    void take('clip', 'c2');
    void take('clip', 'c3');
    free('r1');
    await setImmediate();
    free('c1');
    await setImmediate();
    assert.deepEqual(got, ['r1', 'c1', 'c2', 'c3']);
    free('c2');
    await setImmediate();
    assert.deepEqual(got, ['r1', 'c1', 'c2', 'c3', 'r2']);
  });

  it('refuse the 65th waiting clip, but no recording', async () => {
    const slots = new Slots(1);
    await slots.take('clip');
    const waiting = Array.from({ length: 64 }, () => slots.take('clip'));
    await assert.rejects(slots.take('clip'), { name: 'AudioError', code: 'overloaded' });
    for (let i = 0; i < 200; i++) void slots.take('recording');
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
