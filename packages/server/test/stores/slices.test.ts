import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secrets } from '../../src/stores/signing.ts';
import { nextSlice } from '../../src/stores/slices.ts';

/** Runs the work, and says how often the event loop turned meanwhile. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let running = true;
  const count = () => {
    turns++;
    if (running) setImmediate(count);
  };
  setImmediate(count);
  await work;
  running = false;
  return turns;
}

test('concurrent loops share the event loop: one slice per turn for all of them together', async () => {
  async function loop(): Promise<void> {
    for (let slice = 0; slice < 10; slice++) await nextSlice();
  }
  const turns = await turnsDuring(Promise.all([loop(), loop(), loop(), loop()]));
  assert.ok(turns >= 40, `${turns} turns`);
});

test('ten callers that ask for 10,000 upload URLs each leave room for others after every 500', async () => {
  const secrets = new Secrets(Buffer.alloc(32));
  const numbers = Array.from({ length: 10_000 }, (_, i) => i + 1);
  const target = { id: 'r', expiresAt: Date.now() + 60_000, baseUrl: 'http://127.0.0.1' };
  const all = Array.from({ length: 10 }, () => secrets.urls(target, numbers));
  const turns = await turnsDuring(Promise.all(all));
  assert.ok(turns >= (10 * 10_000) / 500, `${turns} turns`);
});
