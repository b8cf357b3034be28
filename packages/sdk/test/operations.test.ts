import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DISCRETE_ANSWER, TIMELINE } from '@undertone/testing/flaky-server';
import { ConfigError, PredictionTimeoutError } from '../src/errors.ts';
import { EmotionClient } from '../src/index.ts';
import { Bar } from '../src/progress.ts';
import type { Progress, TimelineStep } from '../src/types.ts';
import { clientWithoutWaits, flakyServer, MIB, scrambled } from './support/clients.ts';

const RECORDING = scrambled(3 * MIB);

test('classify uploads a recording and waits for its timeline, beyond twenty polls', async (t) => {
  const server = await flakyServer(t);
  server.pendingPolls = 130;
  const { client } = clientWithoutWaits(server.settings);
  const { emotions, request_id } = await client.asynch.classify(RECORDING, {
    model: '7emotions',
    intervalSeconds: 2,
  });
  assert.deepEqual(emotions, TIMELINE);
  const query = server.uploads.get(request_id)?.query;
  assert.deepEqual([query?.get('model'), query?.get('interval')], ['7emotions', '2']);
});

test('classify polls often at first, then every five seconds, or at the given interval', async (t) => {
  const server = await flakyServer(t);
  server.pendingPolls = 12;
  const { client, waits } = clientWithoutWaits(server.settings);
  await client.asynch.classify(RECORDING);
  assert.equal(waits[0], 500);
  assert.deepEqual(
    waits,
    waits.toSorted((a, b) => a - b),
  );
  assert.equal(waits.at(-1), 5000);
  waits.length = 0;
  await client.asynch.classify(RECORDING, { interval: 2000 });
  assert.deepEqual(new Set(waits), new Set([2000]));
});

test('wait polls a request until it has ended, often at first, then every five seconds', async (t) => {
  const server = await flakyServer(t);
  server.pendingPolls = 130;
  const { client, waits } = clientWithoutWaits(server.settings);
  const requestId = await client.asynch.upload(RECORDING);
  waits.length = 0;
  const { emotions } = await client.asynch.wait(requestId);
  assert.deepEqual(emotions, TIMELINE);
  assert.deepEqual([waits[0], waits.at(-1)], [500, 5000]);
  server.pendingPolls = 3;
  const unfinished = await client.asynch.upload(RECORDING);
  await assert.rejects(client.asynch.wait(unfinished, { maxTries: 2 }), PredictionTimeoutError);
});

test('classify with maxTries times out, and its error has the request ID', async (t) => {
  const server = await flakyServer(t);
  server.pendingPolls = 3;
  const { client } = clientWithoutWaits(server.settings);
  const error = await client.asynch.classify(RECORDING, { maxTries: 2 }).catch((thrown: unknown) => thrown);
  assert(error instanceof PredictionTimeoutError && error.requestId);
  assert.deepEqual((await client.asynch.emotions(error.requestId)).emotions, TIMELINE);
});

test('timeline yields the elements with their start in seconds', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  const requestId = await client.asynch.upload(RECORDING);
  const steps: TimelineStep[] = [];
  for await (const step of client.asynch.timeline(requestId)) steps.push(step);
  assert.deepEqual(
    steps.map(({ t: stamp, seconds }) => [stamp, seconds]),
    [
      ['00:00', 0],
      ['00:05', 5],
      ['100:10', 6010],
    ],
  );
});

test('delete removes a request from the server', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  const requestId = await client.asynch.upload(RECORDING);
  await client.asynch.delete(requestId);
  assert(server.deleted.has(requestId));
});

test('models uses the sibling path of the asynch interface', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  assert.deepEqual((await client.models()).models, []);
  assert.equal(server.seen[0]?.url.pathname, '/v1/models');
});

test('samples are sent in the documented format, a JSON string that contains an object', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  const samples = Float32Array.from({ length: 198_450 }, (_, i) => Math.fround(Math.sin(i / 20) / 2));
  assert.deepEqual(await client.discrete.samples(samples, { model: '5emotions' }), DISCRETE_ANSWER);
  const [call] = server.calls('discrete');
  assert.equal(call?.headers['content-type'], 'application/json');
  const { payload } = JSON.parse(JSON.parse(call?.body.toString() ?? ''));
  assert.deepEqual(Float32Array.from(payload[0]), samples);
  assert.equal(call?.url.searchParams.get('model'), '5emotions');
});

test('without a speech header from the server there is no speechSeconds', async (t) => {
  const server = await flakyServer(t);
  const body = JSON.stringify(DISCRETE_ANSWER);
  for (const headers of [{}, { 'x-speech-seconds': '' }, { 'x-speech-seconds': 'some' }]) {
    server.faults = () => ({ kind: 'answer', status: 200, headers, body });
    const result = await clientWithoutWaits(server.settings).client.discrete.emotions(RECORDING);
    assert.equal('speechSeconds' in result, false);
  }
});

test('invalid samples are rejected before anything is sent', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  const five = () => new Array<number>(5 * 44_100).fill(0);
  for (const [samples, says] of [
    [five().slice(0, 3 * 44_100), /3\.00 seconds: pass 4 to 10/],
    [new Float32Array(11 * 44_100), /11\.00 seconds/],
    [five().with(7, Number.NaN), /Sample 7 is NaN/],
    [five().with(9, 2.5), /Sample 9 is 2.5/],
  ] as const) {
    await assert.rejects(client.discrete.samples(samples), says);
  }
  assert.equal(server.seen.length, 0);
});

test('an unknown model and an unknown option are rejected before anything is sent', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  const model = '9emotions' as never;
  await assert.rejects(
    client.discrete.emotions(RECORDING, { model }),
    /Unknown model "9emotions": choose one of 4emotions/,
  );
  await assert.rejects(client.asynch.upload(RECORDING, { model }), ConfigError);
  await assert.rejects(client.asynch.classify(RECORDING, { model }), ConfigError);
  const interval = { interval: 5000 } as never;
  await assert.rejects(
    client.asynch.upload(RECORDING, interval),
    /no option interval: choose from .*intervalSeconds/,
  );
  assert.throws(() => new EmotionClient({ apikey: 'k' } as never).validateConfig(), /Unknown setting apikey/);
  assert.equal(server.seen.length, 0);
});

test('a custom fetch is used for all calls', async (t) => {
  const server = await flakyServer(t);
  const methods: string[] = [];
  const { client } = clientWithoutWaits({
    ...server.settings,
    fetch: (input, init) => {
      methods.push(init?.method ?? '');
      return fetch(input, init);
    },
  });
  await client.asynch.classify(RECORDING);
  await client.discrete.emotions(RECORDING);
  assert.deepEqual(methods, ['POST', 'PUT', 'POST', 'GET', 'POST']);
});

test('progress is reported from the first byte to the result and never goes backwards', async (t) => {
  const server = await flakyServer(t);
  server.pendingPolls = 2;
  server.faults = ({ part, time }) =>
    part === 2 && time < 2 ? { kind: 'cut', afterBytes: 600_000 } : undefined;
  const { client } = clientWithoutWaits({ ...server.settings, partSize: MIB });
  const told: Progress[] = [];
  await client.asynch.classify(RECORDING, { onProgress: (progress) => told.push(progress) });
  const statuses = told.map(({ status }) => status).filter((status, i, all) => status !== all[i - 1]);
  assert.deepEqual(statuses, ['uploading', 'processing', 'completed']);
  const sent = told.filter(({ status }) => status === 'uploading').map(({ sentBytes }) => sentBytes ?? 0);
  assert.deepEqual(
    sent,
    sent.toSorted((a, b) => a - b),
  );
  assert.equal(sent.at(-1), RECORDING.length);
  assert(sent.length > 6, 'progress within a part');
  assert(told.every(({ requestId }) => requestId === told[0]?.requestId));
});

test('a listener that throws does not stop the upload', async (t) => {
  const server = await flakyServer(t);
  const { client, lines } = clientWithoutWaits(server.settings);
  const onProgress = () => {
    throw new Error('oops');
  };
  const requestId = await client.asynch.upload(RECORDING, { onProgress });
  assert(server.assembled(requestId).equals(RECORDING));
  assert(lines.some((line) => line.includes('onProgress threw')));
});

test('the bar redraws at most ten times a second and leaves whole lines', () => {
  let now = 0;
  let written = '';
  const write = (text: string) => {
    written += text;
  };
  const bar = new Bar({ columns: 60, write }, () => now);
  for (let i = 0; i <= 1000; i++, now += 1) {
    bar.show({ status: 'uploading', progress: i / 1000, sentBytes: i, totalBytes: 1000 });
  }
  bar.show({ status: 'processing', progress: 0.5 });
  bar.show({ status: 'completed', progress: 1 });
  bar.end();
  assert(written.split('\r').length <= 14, `${written.split('\r').length} drawings`);
  const lines = written.split('\n').map((line) => line.split('\r\x1b[2K').at(-1));
  assert.match(lines[0] ?? '', /^Uploading +█+ 100 %/);
  assert.match(lines[1] ?? '', /^Classifying +█+ 100 %$/);
  assert.equal(lines[2], '');
});
