import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DISCRETE_ANSWER, type FlakyServer, KEY } from '@undertone/testing/flaky-server';
import { MissingFileError, RequestFailedError } from '../src/errors.ts';
import type { ManyOutcome } from '../src/many.ts';
import { Pace } from '../src/pace.ts';
import { clientWithoutWaits, collect, flakyServer, scrambled, temporaryFile } from './support/clients.ts';

const FILES = Array.from({ length: 30 }, (_, i) => scrambled(100 + i));

test('results arrive as soon as they are ready, each with its file', async (t) => {
  const server = await flakyServer(t);
  let inFlight = 0;
  let most = 0;
  const fetchCounted: typeof fetch = async (...args) => {
    most = Math.max(most, ++inFlight);
    return fetch(...args).finally(() => inFlight--);
  };
  const { client } = clientWithoutWaits({ ...server.settings, fetch: fetchCounted });
  const outcomes = await collect(client.discrete.many(FILES, { concurrency: 3 }));
  assert.deepEqual(new Set(outcomes.map(({ file }) => file)), new Set(FILES));
  for (const { result } of outcomes) assert.deepEqual(result, DISCRETE_ANSWER);
  assert.equal(most, 3);
});

test('a refused or missing recording does not stop the others', async (t) => {
  const server = await flakyServer(t);
  server.faults = ({ time }) => (time === 1 ? { kind: 'answer', status: 400 } : undefined);
  const good = await temporaryFile(t, 500);
  const { client } = clientWithoutWaits(server.settings);
  const outcomes: ManyOutcome<string>[] = [];
  for await (const outcome of client.discrete.many([good, '/no/such.wav', good, good], { concurrency: 1 })) {
    outcomes.push(outcome);
  }
  const errors = outcomes.map(({ error }) => error?.code ?? null);
  assert.deepEqual(errors, [null, 'missing_file', 'http_error', null]);
  assert(outcomes[1]?.error instanceof MissingFileError);
  assert.deepEqual(outcomes[3], { file: good, result: DISCRETE_ANSWER });
});

test('when the server is busy, all recordings wait, and all succeed in the end', async (t) => {
  const server = await flakyServer(t);
  server.faults = ({ time }) =>
    time < 20 && time % 2 ? { kind: 'answer', status: 503, headers: { 'retry-after': '7' } } : undefined;
  const { client, waits } = clientWithoutWaits(server.settings);
  const outcomes = await collect(client.discrete.many(FILES, { concurrency: 4 }));
  assert.equal(outcomes.filter(({ result }) => result).length, FILES.length);
  assert.equal(waits.length, 10);
  for (const wait of waits) assert(wait >= 7000, `${wait}`);
});

test('a wrong key or no server stops the batch, and leaving the loop cancels the rest', async (t) => {
  const server = await flakyServer(t);
  const wrong = clientWithoutWaits({ ...server.settings, apiKey: `${KEY}x` }).client;
  await assert.rejects(collect(wrong.discrete.many(FILES, { concurrency: 2 })), { status: 401 });
  assert(server.seen.length <= 4, `${server.seen.length} calls`);
  server.seen.length = 0;
  const { client } = clientWithoutWaits(server.settings);
  for await (const { result } of client.discrete.many(FILES, { concurrency: 2 })) {
    assert(result);
    break;
  }
  assert(server.seen.length <= 4, `${server.seen.length} calls`);
});

test('one recording instead of a list is refused with a clear sentence', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  for (const one of ['talk.wav', 'recordings/', scrambled(10), new Blob(['x']), undefined, 7, {}]) {
    await assert.rejects(collect(client.discrete.many(one as never)), {
      name: 'ConfigError',
      message: /^discrete\.many takes a list of recordings.*: pass \['a\.wav', 'b\.wav'\]/,
    });
  }
  await assert.rejects(collect(client.discrete.many('talk.wav' as never)), /not one string/);
  assert.equal(server.seen.length, 0);
});

test('a busy server gets fewer recordings at a time, and more again when it has recovered', async (t) => {
  const server = await flakyServer(t);
  const { served, refused } = busyServer(server, () => 5);
  const { client } = clientWithoutWaits(server.settings);
  const files = Array.from({ length: 200 }, (_, i) => scrambled(100 + i));
  const outcomes = await collect(client.discrete.many(files, { concurrency: 16 }));
  assert.equal(outcomes.filter(({ result }) => result).length, files.length);
  assert.equal(served(), files.length);
  // Without adapting, eleven of sixteen calls are refused again and again.
  assert(refused() < files.length / 4, `${refused()} refused`);
});

test('the pace: halved once for a burst of refusals, raised by one per round, never above the limit', async () => {
  const pace = new Pace({ sleep: async () => undefined }, 8);
  const ok = async () => undefined;
  const busy = async () => {
    throw new RequestFailedError('busy', { status: 503 });
  };
  assert.equal(pace.limit, 4);
  for (let i = 0; i < 20; i++) await pace.run(undefined, ok);
  assert.equal(pace.limit, 8);
  await Promise.allSettled(Array.from({ length: 8 }, () => pace.run(undefined, busy)));
  assert.equal(pace.limit, 4);
  for (let i = 0; i < 5; i++) await pace.run(undefined, ok);
  assert.equal(pace.limit, 5);
  for (let i = 0; i < 10; i++) await pace.run(undefined, busy).catch(() => undefined);
  assert.equal(pace.limit, 1);
  for (let i = 0; i < 1000; i++) await pace.run(undefined, ok);
  assert.equal(pace.limit, 8);
});

/** Takes only `capacity` recordings at a time. */
function busyServer(server: FlakyServer, capacity: () => number) {
  let inFlight = 0;
  let served = 0;
  let refused = 0;
  server.faults = () => {
    if (inFlight >= capacity()) {
      refused++;
      return { kind: 'answer', status: 503 };
    }
    inFlight++;
    served++;
    return { kind: 'slow', milliseconds: 2, done: () => void inFlight-- };
  };
  return { served: () => served, refused: () => refused };
}
