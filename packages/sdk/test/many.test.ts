import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DISCRETE_ANSWER, KEY } from '@undertone/testing/flaky-server';
import { MissingFileError } from '../src/errors.ts';
import type { ManyOutcome } from '../src/many.ts';
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
