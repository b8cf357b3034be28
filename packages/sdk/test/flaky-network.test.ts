import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { UndertoneError, UploadFailedError } from '../src/errors.ts';
import { flakyServer, impatientClient, MIB, PLATFORMS, scrambled } from './support/clients.ts';
import type { Fault } from './support/faults.ts';
import { KEY } from './support/flaky-server.ts';

const RECORDING = scrambled(3 * MIB + 1234);

const SURVIVED: Record<string, Fault> = {
  'is refused with 500': { kind: 'answer', status: 500 },
  'is refused with 503 and Retry-After': { kind: 'answer', status: 503, headers: { 'retry-after': '1' } },
  'is cut before the first byte': { kind: 'cut', afterBytes: 0 },
  'is cut in the middle': { kind: 'cut', afterBytes: 300_000 },
  'is taken but the answer gets lost': { kind: 'silent' },
  'is acknowledged without an ETag': { kind: 'no-etag' },
  'is damaged on the way': { kind: 'damage' },
  'is acknowledged without an ETag and never kept': { kind: 'forget' },
};

for (const [platformName, platform] of Object.entries(PLATFORMS)) {
  for (const [what, fault] of Object.entries(SURVIVED)) {
    test(`${platformName}: the file arrives whole when a part ${what}`, async (t) => {
      const server = await flakyServer(t);
      server.faults = ({ route, part, time }) =>
        route === 'part' && part === 2 && time === 0 ? fault : undefined;
      const { client } = impatientClient({ ...server.settings, partSize: MIB }, platform);
      const requestId = await client.asynch.upload(RECORDING);
      assert(server.assembled(requestId).equals(RECORDING));
    });
  }

  test(`${platformName}: whatever the network does, the file is right or the error is clear and nothing stays`, async (t) => {
    const server = await flakyServer(t);
    const fault = fc.option(fc.constantFrom(...Object.values(SURVIVED)), { nil: undefined, freq: 2 });
    const faultsOfPart = fc.array(fault, { minLength: 5, maxLength: 5 });
    const recording = RECORDING.subarray(0, 2 * MIB + 99);
    await fc.assert(
      fc.asyncProperty(fc.tuple(faultsOfPart, faultsOfPart, faultsOfPart), async (plan) => {
        server.seen.length = 0;
        server.uploads.clear();
        server.faults = ({ route, part, time }) =>
          route === 'part' && part !== null ? plan[part - 1]?.[time] : undefined;
        const { client } = impatientClient({ ...server.settings, partSize: MIB, maxThreads: 2 }, platform);
        try {
          const requestId = await client.asynch.upload(recording);
          assert(server.assembled(requestId).equals(recording));
        } catch (error) {
          assert(error instanceof UploadFailedError, String(error));
          assert.match(error.message, /after 3 retries|send them again/);
          assert.equal(server.uploads.size, 0, 'the failed upload was not cancelled');
        }
      }),
      { seed: 20_261, numRuns: 25 },
    );
  });
}

test('a part that stays damaged is an error in the end, never a wrong file', async (t) => {
  const server = await flakyServer(t);
  server.faults = ({ part }) => (part === 1 ? { kind: 'damage' } : undefined);
  const { client } = impatientClient(server.settings);
  await assert.rejects(client.asynch.upload(RECORDING), {
    name: 'UploadFailedError',
    code: 'etag_mismatch',
    message: 'Part 1 arrived damaged. (after 3 retries)',
  });
  assert.equal(server.calls('complete').length, 0);
});

test('parts the service says it does not hold are sent once more, and only those', async (t) => {
  const server = await flakyServer(t);
  server.faults = ({ part, time }) => (part === 3 && time === 0 ? { kind: 'forget' } : undefined);
  const { client } = impatientClient({ ...server.settings, partSize: MIB });
  const requestId = await client.asynch.upload(RECORDING);
  assert(server.assembled(requestId).equals(RECORDING));
  const sent = server.calls('part').map(({ part }) => part);
  assert.deepEqual(sent.toSorted(), [1, 2, 3, 3, 4]);
  assert.equal(server.calls('complete').length, 2);
});

test('an answer to the last call that gets lost does not harm: it is asked again', async (t) => {
  const server = await flakyServer(t);
  server.faults = ({ route, time }) => (route === 'complete' && time === 0 ? { kind: 'silent' } : undefined);
  const { client } = impatientClient(server.settings);
  const requestId = await client.asynch.upload(RECORDING);
  assert(server.assembled(requestId).equals(RECORDING));
});

test('a failed upload is cancelled on the server, and failing at that changes nothing for the caller', async (t) => {
  const server = await flakyServer(t);
  server.faults = ({ route }) => (route === 'part' ? { kind: 'answer', status: 403 } : undefined);
  const { client } = impatientClient({ ...server.settings, partSize: MIB });
  await assert.rejects(client.asynch.upload(RECORDING), { name: 'UploadFailedError', status: 403 });
  assert.equal(server.deleted.size, 1);
  server.faults = ({ route }) =>
    route === 'part' || route === 'delete'
      ? { kind: 'answer', status: route === 'part' ? 403 : 500 }
      : undefined;
  await assert.rejects(client.asynch.upload(RECORDING), { name: 'UploadFailedError', status: 403 });
});

test('the first part that fails for good stops the others', async (t) => {
  const server = await flakyServer(t);
  server.faults = ({ part }) =>
    part === 1 ? { kind: 'answer', status: 413 } : { kind: 'slow', milliseconds: part === null ? 0 : 100 };
  const { client } = impatientClient({ ...server.settings, partSize: MIB, maxThreads: 2 });
  await assert.rejects(client.asynch.upload(scrambled(20 * MIB)), { status: 413 });
  assert(server.calls('part').length <= 3, `${server.calls('part').length} parts were sent`);
});

test('a presigned address gets the part and its length, but never the key', async (t) => {
  const server = await flakyServer(t);
  const { client } = impatientClient(server.settings);
  await client.asynch.upload(RECORDING);
  const [call] = server.calls('part');
  assert.equal(call?.headers['x-api-key'], undefined);
  assert.equal(call?.headers['content-length'], String(RECORDING.length));
  assert.equal(call?.url.searchParams.get('signature'), 'secret-signature');
});

test('nothing in the log or in an error gives away the key, a signature or the name of the file', async (t) => {
  const server = await flakyServer(t);
  server.faults = ({ route }) => (route === 'part' ? { kind: 'cut', afterBytes: 10 } : undefined);
  const { client, lines } = impatientClient({ ...server.settings, logLevel: 'debug' });
  const file = new File([RECORDING], 'my-therapist.wav');
  const error = await client.asynch.upload(file).catch((thrown: unknown) => thrown);
  assert(error instanceof UploadFailedError);
  assert(lines.length > 5);
  for (const text of [...lines, error.message, String(error.stack)]) {
    for (const secret of [KEY, 'secret-signature', 'my-therapist']) assert(!text.includes(secret), text);
  }
});

test('an abort stops the upload at once, throws the reason and cancels the request', async (t) => {
  const server = await flakyServer(t);
  const aborter = new AbortController();
  const reason = new Error('the user went home');
  server.faults = ({ part }) => {
    if (part === 2) aborter.abort(reason);
    return part === null ? undefined : { kind: 'slow', milliseconds: 5_000 };
  };
  const { client } = impatientClient({ ...server.settings, partSize: MIB });
  const started = performance.now();
  await assert.rejects(client.asynch.upload(RECORDING, { signal: aborter.signal }), reason);
  assert(performance.now() - started < 3_000);
  assert.equal(server.deleted.size, 1);
});

test('an abort before the start sends nothing', async (t) => {
  const server = await flakyServer(t);
  const { client } = impatientClient(server.settings);
  const signal = AbortSignal.abort();
  await assert.rejects(client.asynch.upload(RECORDING, { signal }), { name: 'AbortError' });
  await assert.rejects(client.discrete.emotions(RECORDING, { signal }), { name: 'AbortError' });
  assert.equal(server.seen.length, 0);
});

test('an abort ends the wait for a result', async (t) => {
  const server = await flakyServer(t);
  server.pendingPolls = 1000;
  const { client } = impatientClient(server.settings);
  const requestId = await client.asynch.upload(RECORDING);
  const aborter = new AbortController();
  const onProgress = () => aborter.abort();
  await assert.rejects(client.asynch.emotions(requestId, { signal: aborter.signal, onProgress }), {
    name: 'AbortError',
  });
  assert.equal(server.calls('prediction').length, 1);
});

test('a server that is not there is said to be so, with the cause', async () => {
  const vacant = createServer().listen(0, '127.0.0.1');
  await once(vacant, 'listening');
  const { port } = vacant.address() as { port: number };
  vacant.close();
  const asynchUrl = `http://127.0.0.1:${port}/v1/asynch`;
  const { client, waits } = impatientClient({ apiKey: KEY, asynchUrl, retryAttempts: 2, logLevel: 'error' });
  await assert.rejects(client.asynch.upload(RECORDING), (error) => {
    assert(error instanceof UndertoneError);
    assert.deepEqual(
      [error.name, error.code, error.status],
      ['UploadFailedError', 'connection_failed', undefined],
    );
    assert.match(error.message, /ECONNREFUSED.*after 2 retries/);
    assert(error.cause instanceof Error);
    return true;
  });
  assert.equal(waits.length, 2);
});
