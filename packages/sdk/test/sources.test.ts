import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createReadStream, createWriteStream } from 'node:fs';
import { appendFile, open, readdir, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { ConfigError, MissingFileError } from '../src/errors.ts';
import { browserPlatform } from '../src/platform/browser.ts';
import type { AudioInput } from '../src/types.ts';
import {
  clientWithoutWaits,
  flakyServer,
  MIB,
  PLATFORMS,
  scrambled,
  temporaryFile,
  temporaryFolder,
} from './support/clients.ts';

const SIZE = 2 * MIB + 77;
const RECORDING = scrambled(SIZE);

const IN_MEMORY: Record<string, () => AudioInput> = {
  'a Buffer': () => RECORDING,
  'a Uint8Array that is a view of more': () => new Uint8Array(scrambled(SIZE + 100).buffer, 0, SIZE),
  'an ArrayBuffer': () => new Uint8Array(RECORDING).buffer,
  'a Blob': () => new Blob([RECORDING]),
  'a File': () => new File([RECORDING], 'talk.wav'),
  'a web stream': () => new Blob([RECORDING]).stream(),
  'a Node stream': () => Readable.from([RECORDING.subarray(0, 1000), RECORDING.subarray(1000)]),
  'an async iterable': async function* () {
    for (let at = 0; at < SIZE; at += 10_000) yield RECORDING.subarray(at, at + 10_000);
  },
};

for (const [platformName, platform] of Object.entries(PLATFORMS)) {
  for (const [what, make] of Object.entries(IN_MEMORY)) {
    test(`${platformName}: both interfaces take ${what}`, async (t) => {
      const server = await flakyServer(t);
      const { client } = clientWithoutWaits({ ...server.settings, partSize: MIB }, platform);
      const requestId = await client.asynch.upload(make());
      assert(server.assembled(requestId).equals(RECORDING));
      await client.discrete.emotions(make());
      assert(server.calls('discrete')[0]?.body.includes(RECORDING));
    });
  }
}

test('a file can be a path, a URL or a stream; the server sees only its base name', async (t) => {
  const server = await flakyServer(t);
  const path = await temporaryFile(t, SIZE, 'Gespräch mit Anna?.wav');
  const { client } = clientWithoutWaits(server.settings);
  for (const input of [path, pathToFileURL(path), createReadStream(path)]) {
    const requestId = await client.asynch.upload(input);
    assert(server.assembled(requestId).equals(RECORDING));
    assert.equal(server.uploads.get(requestId)?.query.get('file_name'), 'Gespräch mit Anna?.wav');
  }
});

test('a pipe, which has no length, works like a file', async (t) => {
  const server = await flakyServer(t);
  const pipe = join(await temporaryFolder(t), 'pipe');
  await promisify(execFile)('mkfifo', [pipe]);
  const { client } = clientWithoutWaits(server.settings);
  Readable.from([RECORDING]).pipe(createWriteStream(pipe));
  const requestId = await client.asynch.upload(pipe);
  assert(server.assembled(requestId).equals(RECORDING));
});

test('a stream leaves no file behind, after success or failure', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  const folder = await temporaryFolder(t);
  const { TMPDIR } = process.env;
  Object.assign(process.env, { TMPDIR: folder });
  t.after(() => Object.assign(process.env, { TMPDIR: TMPDIR ?? '/tmp' }));
  await client.asynch.upload(Readable.from([RECORDING]));
  const broken = async function* () {
    yield RECORDING;
    throw new Error('the microphone fell down');
  };
  await assert.rejects(client.asynch.upload(broken()), /microphone/);
  assert.deepEqual(await readdir(folder), []);
});

test('a stream above the size limit stops being read, and nothing is sent', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  let yielded = 0;
  const endless = async function* () {
    for (;;) {
      yield RECORDING;
      yielded += SIZE;
    }
  };
  await assert.rejects(client.discrete.emotions(endless()), { code: 'file_too_large' });
  assert(yielded < 40 * MIB);
  assert.equal(server.seen.length, 0);
});

test('a file above the size limit is rejected before anything is sent', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  const path = await temporaryFile(t, 0);
  await truncate(path, 1024 * MIB + 1);
  await assert.rejects(client.asynch.upload(path), { name: 'UploadFailedError', code: 'file_too_large' });
  await assert.rejects(client.discrete.emotions(path), {
    name: 'RequestFailedError',
    code: 'file_too_large',
  });
  assert.equal(server.seen.length, 0);
});

test('an empty file is rejected before anything is sent', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  const path = await temporaryFile(t, 0);
  await assert.rejects(client.asynch.upload(path), { name: 'UploadFailedError', code: 'audio_too_short' });
  assert.equal(server.seen.length, 0);
});

const CHANGES: Record<string, { change: (path: string) => Promise<void>; says: RegExp }> = {
  grows: { change: (path) => appendFile(path, 'more'), says: /grew/ },
  shrinks: { change: (path) => truncate(path, 1000), says: /became shorter/ },
  'is written over': { change: writeOver, says: /was written to/ },
};

for (const [what, { change, says }] of Object.entries(CHANGES)) {
  test(`a file that ${what} while it is being sent is a clear error, and the request is deleted`, async (t) => {
    const server = await flakyServer(t);
    const path = await temporaryFile(t, 5 * MIB);
    let changing: Promise<void> | undefined;
    server.faults = ({ part }) => {
      if (part === 2) changing ??= change(path);
      return undefined;
    };
    const { client } = clientWithoutWaits({ ...server.settings, partSize: MIB, maxThreads: 1 });
    await assert.rejects(client.asynch.upload(path), (error: Error & { code?: string }) => {
      assert.deepEqual([error.name, error.code], ['UploadFailedError', 'file_changed']);
      assert.match(error.message, says);
      return true;
    });
    await changing;
    assert.equal(server.calls('complete').length, 0);
    assert.equal(server.deleted.size, 1);
  });
}

test('a truncated file is reported at once, not retried as a connection error', async (t) => {
  const server = await flakyServer(t);
  const path = await temporaryFile(t, 5 * MIB);
  const { client, waits } = clientWithoutWaits({
    ...server.settings,
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      if (String(input).includes('initiate')) await truncate(path, 1000);
      return response;
    },
  });
  await assert.rejects(client.asynch.upload(path), { code: 'file_changed', message: /became shorter/ });
  assert.deepEqual(waits, []);
});

test('unsupported input is rejected with a clear message', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  for (const input of [undefined, null, 7, {}, [1, 2]]) {
    await assert.rejects(client.asynch.upload(input as never), ConfigError);
    await assert.rejects(client.discrete.emotions(input as never), /Unsupported input/);
  }
  const text = createReadStream(await temporaryFile(t, 100), { encoding: 'latin1' });
  await assert.rejects(client.asynch.upload(text), /without an encoding/);
  assert.equal(server.seen.length, 0);
});

test('in a browser, a path is rejected with a hint', async () => {
  const { client } = clientWithoutWaits({ apiKey: 'k' }, browserPlatform);
  await assert.rejects(client.asynch.upload('talk.wav'), /File or Blob/);
  await assert.rejects(client.discrete.emotions('talk.wav'), MissingFileError);
});

async function writeOver(path: string): Promise<void> {
  const handle = await open(path, 'r+');
  await handle.write('other', 4 * MIB);
  await handle.close();
}
