import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { getEventListeners, once } from 'node:events';
import { open, readdir } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { KEY } from '@undertone/testing/flaky-server';
import type { PlatformClient } from '../src/client.ts';
import { EmotionClient } from '../src/index.ts';
import type { AudioInput, StreamPrediction } from '../src/types.ts';
import {
  clientWithoutWaits,
  collect,
  flakyServer,
  MIB,
  PLATFORMS,
  scrambled,
  temporaryFolder,
} from './support/clients.ts';
import { until } from './support/until.ts';

const REASON = new Error('the caller has left');
const RECORDING = scrambled(3 * MIB);

/** Sources that yield once and then never again; `isReleased` says whether they were closed. */
const STALLED: Record<string, () => { input: AudioInput; isReleased: () => boolean }> = {
  'a web stream': () => {
    let isReleased = false;
    const input = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new Uint8Array(10)),
      cancel: () => {
        isReleased = true;
      },
    });
    return { input, isReleased: () => isReleased };
  },
  'a Node stream': () => {
    const input = new Readable({ read: () => undefined });
    input.push(new Uint8Array(10));
    return { input, isReleased: () => input.destroyed };
  },
  'an async iterable': () => {
    let isReleased = false;
    const iterator = {
      next: () => new Promise<IteratorResult<Uint8Array>>(() => undefined),
      return: async () => {
        isReleased = true;
        return { done: true as const, value: undefined };
      },
    };
    return { input: { [Symbol.asyncIterator]: () => iterator }, isReleased: () => isReleased };
  },
};

const READERS: Record<
  string,
  (client: PlatformClient, input: AudioInput, signal: AbortSignal) => Promise<unknown>
> = {
  'discrete.emotions': (client, input, signal) => client.discrete.emotions(input, { signal }),
  'discrete.many': (client, input, signal) => collect(client.discrete.many([input], { signal })),
  'asynch.upload': (client, input, signal) => client.asynch.upload(input, { signal }),
  'asynch.submit': (client, input, signal) => client.asynch.submit(input, { signal }),
  'asynch.classify': (client, input, signal) => client.asynch.classify(input, { signal }),
};

for (const [platformName, platform] of Object.entries(PLATFORMS)) {
  for (const [what, stalled] of Object.entries(STALLED)) {
    test(`${platformName}: an abort ends the reading of ${what} that never yields, and closes it`, async (t) => {
      const server = await flakyServer(t);
      const { client } = clientWithoutWaits(server.settings, platform);
      for (const [operation, read] of Object.entries(READERS)) {
        const { input, isReleased } = stalled();
        const aborter = new AbortController();
        const reading = read(client, input, aborter.signal);
        setTimeout(() => aborter.abort(REASON), 5);
        await assert.rejects(reading, REASON, operation);
        await until(`${operation} closes its source`, isReleased);
        assert.equal(getEventListeners(aborter.signal, 'abort').length, 0, operation);
      }
      assert.equal(server.seen.length, 0);
    });
  }
}

test('an abort while a stream is spooled leaves no file and no handle', async (t) => {
  const server = await flakyServer(t);
  const folder = await temporaryFolder(t);
  const { TMPDIR } = process.env;
  Object.assign(process.env, { TMPDIR: folder });
  t.after(() => Object.assign(process.env, { TMPDIR: TMPDIR ?? '/tmp' }));
  const { client } = clientWithoutWaits(server.settings);
  const aborter = new AbortController();
  const source = async function* () {
    yield RECORDING;
    aborter.abort(REASON);
    await new Promise(() => undefined);
  };
  const before = await openFiles();
  await assert.rejects(client.asynch.upload(source(), { signal: aborter.signal }), REASON);
  assert.deepEqual(await readdir(folder), []);
  await until('all files are closed', async () => (await openFiles()) === before);
});

test('an abort ends the wait for a pipe without a writer, or with a silent one', async (t) => {
  const server = await flakyServer(t);
  const pipe = join(await temporaryFolder(t), 'pipe');
  await promisify(execFile)('mkfifo', [pipe]);
  const { client } = clientWithoutWaits(server.settings);
  const before = await openFiles();
  for (const hasWriter of [false, true]) {
    const aborter = new AbortController();
    const reading = client.asynch.upload(pipe, { signal: aborter.signal });
    const writer = hasWriter ? await open(pipe, 'w') : undefined;
    await writer?.write('some bytes');
    setTimeout(() => aborter.abort(REASON), 20);
    await assert.rejects(reading, REASON);
    await writer?.close();
    await until('all files are closed', async () => (await openFiles()) === before);
  }
});

for (const [platformName, platform] of Object.entries(PLATFORMS)) {
  test(`${platformName}: an abort ends an upload that the server has stopped reading, and closes its connections`, async (t) => {
    const server = await flakyServer(t);
    const { baseUrl, sockets } = await silentServer(t, { reads: false });
    const { port } = new URL(baseUrl);
    // The parts go to the server that never reads.
    const redirected: typeof fetch = (input, init) => {
      const url = new URL(String(input));
      if (init?.method === 'PUT') url.port = port;
      return fetch(url, init);
    };
    const { client } = clientWithoutWaits({ ...server.settings, fetch: redirected, partSize: MIB }, platform);
    const aborter = new AbortController();
    const uploading = client.asynch.upload(scrambled(20 * MIB), { signal: aborter.signal });
    await until('connected', () => sockets.size > 0);
    aborter.abort(REASON);
    await assert.rejects(uploading, REASON);
    await until('all connections are closed', () => {
      // Only a socket that is read notices its end.
      for (const socket of sockets) socket.resume();
      return sockets.size === 0;
    });
  });
}

test('an abort ends a call even if a custom fetch ignores it', async () => {
  const fetchForever = () => new Promise<Response>(() => undefined);
  const { client } = clientWithoutWaits({ apiKey: KEY, fetch: fetchForever });
  const id = '0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10';
  for (const call of [
    (signal: AbortSignal) => client.discrete.emotions(RECORDING, { signal }),
    (signal: AbortSignal) => client.asynch.upload(RECORDING, { signal }),
    (signal: AbortSignal) => client.asynch.status(id, { signal }),
    (signal: AbortSignal) => client.asynch.delete(id, { signal }),
    (signal: AbortSignal) => client.asynch.webhookSecret({ signal }),
    (signal: AbortSignal) => client.tokens.create({ signal }),
    (signal: AbortSignal) => client.models({ signal }),
  ]) {
    const aborter = new AbortController();
    setTimeout(() => aborter.abort(REASON), 1);
    await assert.rejects(call(aborter.signal), REASON);
  }
});

test('an abort ends discrete.many while it waits for the next file of a list', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  const aborter = new AbortController();
  const files = async function* () {
    yield RECORDING.subarray(0, 100);
    await new Promise(() => undefined);
  };
  const outcomes = client.discrete.many(files(), { signal: aborter.signal });
  assert((await outcomes.next()).value?.result, 'the first result does not wait for the second file');
  setTimeout(() => aborter.abort(REASON), 1);
  await assert.rejects(outcomes.next(), REASON);
});

/** Accepts connections and never answers. */
async function silentServer(
  t: TestContext,
  { reads = true } = {},
): Promise<{ baseUrl: string; sockets: Set<Socket> }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    if (reads) socket.resume();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets };
}

test('an abort ends the connecting of a stream: nothing stays pending, nothing stays open', async (t) => {
  const { baseUrl, sockets } = await silentServer(t);
  const client = new EmotionClient({ apiKey: KEY, baseUrl, logLevel: 'silent' });
  const aborter = new AbortController();
  const stream = client.stream({ signal: aborter.signal });
  const reading = collectPredictions(stream);
  const { input, isReleased } = (STALLED['an async iterable'] as (typeof STALLED)[string])();
  const fed = client.stream({ signal: aborter.signal }).feed(input as AsyncIterable<Uint8Array>);
  const piped = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => undefined) });
  const piping = piped.pipeTo(client.stream({ signal: aborter.signal }).writable);
  const writing = stream.write(new Uint8Array(100));
  const ending = stream.end();
  await until('connected', () => sockets.size > 0);
  aborter.abort(REASON);
  for (const pending of [writing, ending, reading, collectPredictions(fed), piping]) {
    await assert.rejects(pending, REASON);
  }
  await until('all connections are closed', () => sockets.size === 0);
  assert(isReleased());
  assert.equal(getEventListeners(aborter.signal, 'abort').length, 0);
});

test('a stream that cannot connect in time is a time-out for writer and reader, and its socket is closed', async (t) => {
  const { baseUrl, sockets } = await silentServer(t);
  const client = new EmotionClient({ apiKey: KEY, baseUrl, logLevel: 'silent' });
  const stream = client.stream({ timeout: 50 });
  const timedOut = { name: 'RequestTimeoutError', code: 'timed_out', message: /did not connect within/ };
  await assert.rejects(stream.write(new Uint8Array(100)), timedOut);
  await assert.rejects(collectPredictions(stream), timedOut);
  await until('all connections are closed', () => sockets.size === 0);
});

test('without a timeout of its own, a stream has ten seconds to connect', async (t) => {
  const { baseUrl } = await silentServer(t);
  const client = new EmotionClient({ apiKey: KEY, baseUrl, logLevel: 'silent' });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const writing = client.stream().write(new Uint8Array(100));
  let isPending = true;
  const settled = assert.rejects(writing, { code: 'timed_out' }).finally(() => {
    isPending = false;
  });
  await new Promise(setImmediate);
  t.mock.timers.tick(9_999);
  await new Promise(setImmediate);
  assert(isPending);
  t.mock.timers.tick(1);
  await settled;
});

async function collectPredictions(stream: AsyncIterable<StreamPrediction>): Promise<StreamPrediction[]> {
  return collect(stream);
}

async function openFiles(): Promise<number> {
  return (await readdir('/proc/self/fd')).length;
}
