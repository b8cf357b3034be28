import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { IdleTimeout } from '../src/asynch/part.ts';
import { resolveConfig } from '../src/config.ts';
import { PredictionTimeoutError, RequestTimeoutError } from '../src/errors.ts';
import { Context } from '../src/http.ts';
import { EmotionClient } from '../src/index.ts';
import { nodePlatform } from '../src/platform/node.ts';
import { sleep } from '../src/platform/platform.ts';
import { clientWithoutWaits, collect, flakyServer, MIB, scrambled } from './support/clients.ts';
import { run } from './support/packed.ts';

test('a finished part has no timeout, even if its connection still reads', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const idle = new IdleTimeout();
  idle.stop();
  idle.restart();
  t.mock.timers.tick(1_000_000);
  assert.equal(idle.signal.aborted, false);
});

test('a slow part arrives, and one without progress for two minutes is resent', async (t) => {
  const server = await flakyServer(t);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let attempts = 0;
  const slow: typeof fetch = async (input, init) => {
    if (init?.method !== 'PUT') return fetch(input, init);
    if (attempts++ === 0) {
      t.mock.timers.tick(120_000);
      init.signal?.throwIfAborted();
    }
    const pieces: Uint8Array[] = [];
    for await (const piece of init.body as ReadableStream<Uint8Array>) {
      pieces.push(new Uint8Array(piece));
      t.mock.timers.tick(100_000);
      init.signal?.throwIfAborted();
    }
    return fetch(input, { method: 'PUT', body: Buffer.concat(pieces) });
  };
  const { client, waits } = clientWithoutWaits({ ...server.settings, fetch: slow });
  const requestId = await client.asynch.upload(scrambled(MIB));
  assert(server.assembled(requestId).equals(scrambled(MIB)));
  assert.deepEqual([attempts, waits.length], [2, 1]);
});

test('a call without a response times out', async (t) => {
  const server = await flakyServer(t);
  const timeout = new AbortController();
  server.faults = () => {
    timeout.abort();
    return { kind: 'hang' };
  };
  const context = new Context(nodePlatform, { ...resolveConfig(server.settings, nodePlatform), apiKey: 'k' });
  const call = context.send({ method: 'GET', url: `${server.origin}/v1/models`, timeout: timeout.signal });
  await assert.rejects(call, {
    name: 'RequestTimeoutError',
    code: 'timed_out',
    message: /did not respond in time/,
  });
});

test('timeout limits a whole call, and the client has one for all calls', async (t) => {
  const server = await flakyServer(t);
  const known = await clientWithoutWaits(server.settings).client.asynch.upload(scrambled(MIB));
  server.faults = () => ({ kind: 'hang' });
  const over = { name: 'RequestTimeoutError', code: 'timed_out', message: /within its timeout of 50 milli/ };
  const { client: slowClient } = clientWithoutWaits(server.settings);
  const { client: hasty } = clientWithoutWaits({ ...server.settings, timeout: 50 });
  for (const [client, options] of [
    [slowClient, { timeout: 50 }],
    [hasty, {}],
  ] as const) {
    await assert.rejects(client.discrete.emotions(scrambled(100), options), over);
    await assert.rejects(client.discrete.samples(new Float32Array(5 * 44_100), options), over);
    await assert.rejects(client.asynch.upload(scrambled(100), options), over);
    await assert.rejects(client.asynch.submit(scrambled(100), options), over);
    await assert.rejects(client.asynch.list(options), over);
    await assert.rejects(client.asynch.status(known, options), over);
    await assert.rejects(client.asynch.delete(known, options), over);
    await assert.rejects(client.models(options), over);
    await assert.rejects(client.tokens.create(options), over);
    const [outcome] = await collect(client.discrete.many([scrambled(100)], options));
    assert.equal(outcome?.error?.name, 'RequestTimeoutError');
  }
});

test('a timeout that covers a retry or a stalled source ends them, too', async (t) => {
  const server = await flakyServer(t);
  server.faults = () => ({ kind: 'answer', status: 503, headers: { 'retry-after': '30' } });
  const client = new EmotionClient({ ...server.settings, logLevel: 'silent', timeout: 50 });
  await assert.rejects(client.discrete.emotions(scrambled(100)), { name: 'RequestTimeoutError' });
  const stalled = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => undefined) });
  await assert.rejects(client.asynch.upload(stalled), { name: 'RequestTimeoutError' });
});

test('an upload that timed out can be resumed, and a request that is not ready in time polled again', async (t) => {
  const server = await flakyServer(t);
  server.faults = ({ part }) => (part === 2 ? { kind: 'hang' } : undefined);
  const { client } = clientWithoutWaits({ ...server.settings, partSize: MIB });
  const recording = scrambled(3 * MIB);
  const error = await client.asynch.upload(recording, { timeout: 500 }).catch((thrown: unknown) => thrown);
  assert(error instanceof RequestTimeoutError && error.requestId);
  server.faults = () => undefined;
  assert.equal(await client.asynch.upload(recording, { resume: error.requestId }), error.requestId);
  assert(server.assembled(error.requestId).equals(recording));
  server.faults = ({ route }) => (route === 'prediction' ? { kind: 'hang' } : undefined);
  const late = await client.asynch.classify(recording, { timeout: 500 }).catch((thrown: unknown) => thrown);
  assert(late instanceof PredictionTimeoutError && late instanceof RequestTimeoutError && late.requestId);
});

test('a timeout must be a whole number of milliseconds', async () => {
  const { client } = clientWithoutWaits({ apiKey: 'k' });
  for (const timeout of [0, -1, 1.5, Number.NaN, '50', 2 ** 31]) {
    const message = /timeout is .*: pass a whole number of milliseconds/;
    await assert.rejects(client.models({ timeout } as never), message);
    await assert.rejects(collect(client.discrete.many([], { timeout } as never)), message);
    assert.throws(() => client.stream({ timeout } as never), message);
    assert.throws(
      () => clientWithoutWaits({ apiKey: 'k', timeout } as never).client.validateConfig(),
      message,
    );
  }
});

test('an abort ends a sleep at once, and a completed sleep leaves no listener', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const aborter = new AbortController();
  const finished = sleep(60_000, aborter.signal);
  t.mock.timers.tick(60_000);
  await finished;
  assert.equal(getEventListeners(aborter.signal, 'abort').length, 0);
  const waiting = sleep(60_000, aborter.signal);
  aborter.abort(new Error('enough'));
  await assert.rejects(waiting, /enough/);
  await assert.rejects(sleep(60_000, aborter.signal), /enough/);
});

test('memory does not grow with the file: six times the size, the same peak', async (t) => {
  const server = await flakyServer(t);
  const peak = async (kind: string, bytes: number) => {
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', MEASURE], {
      env: { ...process.env, SETTINGS: JSON.stringify(server.settings), KIND: kind, BYTES: String(bytes) },
    });
    server.uploads.clear();
    server.seen.length = 0;
    return Number(stdout);
  };
  for (const kind of ['path', 'stream']) {
    const [small, large] = [await peak(kind, 16 * MIB), await peak(kind, 96 * MIB)];
    assert(large - small < 20, `${kind}: ${small} MiB for the small file, ${large} MiB for the large one`);
    assert(large < 150, `${kind}: ${large} MiB`);
  }
});

const MEASURE = `
  import { createReadStream } from 'node:fs';
  import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
  import { tmpdir } from 'node:os';
  import { EmotionClient } from '${new URL('../src/index.ts', import.meta.url).href}';
  const folder = await mkdtemp(tmpdir() + '/undertone-memory-');
  const path = folder + '/talk.wav';
  await writeFile(path, '');
  await truncate(path, Number(process.env.BYTES));
  const client = new EmotionClient(JSON.parse(process.env.SETTINGS));
  await client.asynch.upload(process.env.KIND === 'path' ? path : createReadStream(path));
  await rm(folder, { recursive: true });
  // The kernel's high-water mark in KiB misses nothing between two samples.
  const [, peak] = /VmHWM:\\s+(\\d+)/.exec(await readFile('/proc/self/status', 'utf8'));
  process.stdout.write(String(Math.round(peak / 1024)));
`;
