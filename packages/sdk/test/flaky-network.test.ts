import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Fault } from '@undertone/testing/faults';
import { DISCRETE_ANSWER, KEY } from '@undertone/testing/flaky-server';
import { freePort } from '@undertone/testing/ready';
import fc from 'fast-check';
import type { PlatformClient } from '../src/client.ts';
import { UndertoneError, UploadFailedError } from '../src/errors.ts';
import { clientWithoutWaits, flakyServer, MIB, PLATFORMS, scrambled } from './support/clients.ts';

const RECORDING = scrambled(3 * MIB + 1234);

const SURVIVED: Record<string, Fault> = {
  'is refused with 500': { kind: 'answer', status: 500 },
  'is refused with 503 and Retry-After': { kind: 'answer', status: 503, headers: { 'retry-after': '1' } },
  'is cut before the first byte': { kind: 'cut', afterBytes: 0 },
  'is cut in the middle': { kind: 'cut', afterBytes: 300_000 },
  'is taken but the answer gets lost': { kind: 'silent' },
  'is acknowledged without an ETag': { kind: 'no-etag' },
  'is damaged on the way': { kind: 'damage' },
  'is acknowledged without an ETag and never stored': { kind: 'forget' },
};

for (const [platformName, platform] of Object.entries(PLATFORMS)) {
  for (const [what, fault] of Object.entries(SURVIVED)) {
    test(`${platformName}: the file arrives intact when a part ${what}`, async (t) => {
      const server = await flakyServer(t);
      server.faults = ({ route, part, time }) =>
        route === 'part' && part === 2 && time === 0 ? fault : undefined;
      const { client } = clientWithoutWaits({ ...server.settings, partSize: MIB }, platform);
      const requestId = await client.asynch.upload(RECORDING);
      assert(server.assembled(requestId).equals(RECORDING));
    });
  }

  test(`${platformName}: whatever the network does, the file is intact, or the error is clear and the upload can be resumed`, async (t) => {
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
        const { client } = clientWithoutWaits({ ...server.settings, partSize: MIB, maxThreads: 2 }, platform);
        try {
          const requestId = await client.asynch.upload(recording);
          assert(server.assembled(requestId).equals(recording));
        } catch (error) {
          assert(error instanceof UploadFailedError, String(error));
          assert.match(error.message, /after 3 retries|send them again/);
          server.faults = () => undefined;
          if (/send them again/.test(error.message)) {
            assert.equal(server.uploads.size, 0, 'nothing stays');
            return;
          }
          const { parts } = server.uploads.get(error.requestId ?? '') ?? assert.fail();
          const isDamaged = [...parts].some(
            ([part, bytes]) => !bytes.equals(recording.subarray((part - 1) * MIB, part * MIB)),
          );
          const continued = client.asynch.upload(recording, { resume: error.requestId });
          if (isDamaged) await assert.rejects(continued, { code: 'other_recording' });
          else assert(server.assembled(await continued).equals(recording));
        }
      }),
      { seed: 20_261, numRuns: 12 },
    );
  });
}

test('a part that stays corrupted is an error, never a wrong file', async (t) => {
  const server = await flakyServer(t);
  server.faults = ({ part }) => (part === 1 ? { kind: 'damage' } : undefined);
  const { client } = clientWithoutWaits(server.settings);
  await assert.rejects(client.asynch.upload(RECORDING), {
    name: 'UploadFailedError',
    code: 'etag_mismatch',
    message: 'Part 1 was corrupted on the way. (after 3 retries)',
  });
  assert.equal(server.calls('complete').length, 0);
});

test('a store with server-side encryption gets its own ETags back', async (t) => {
  const server = await flakyServer(t);
  server.encrypts = true;
  const { client } = clientWithoutWaits({ ...server.settings, partSize: MIB });
  assert(server.assembled(await client.asynch.upload(RECORDING)).equals(RECORDING));
  assert.equal(server.calls('part').length, 4, 'no part was sent twice');
});

test('only the parts that the server reports as missing are resent', async (t) => {
  const server = await flakyServer(t);
  server.faults = ({ part, time }) => (part === 3 && time === 0 ? { kind: 'forget' } : undefined);
  const { client } = clientWithoutWaits({ ...server.settings, partSize: MIB });
  const requestId = await client.asynch.upload(RECORDING);
  assert(server.assembled(requestId).equals(RECORDING));
  const sent = server.calls('part').map(({ part }) => part);
  assert.deepEqual(sent.toSorted(), [1, 2, 3, 3, 4]);
  assert.equal(server.calls('complete').length, 2);
});

test('a lost response to the complete call is retried', async (t) => {
  const server = await flakyServer(t);
  server.faults = ({ route, time }) => (route === 'complete' && time === 0 ? { kind: 'silent' } : undefined);
  const { client } = clientWithoutWaits(server.settings);
  const requestId = await client.asynch.upload(RECORDING);
  assert(server.assembled(requestId).equals(RECORDING));
});

test('a failed upload is deleted on the server, and a failure of that does not change the error', async (t) => {
  const server = await flakyServer(t);
  server.faults = ({ route }) => (route === 'part' ? { kind: 'answer', status: 403 } : undefined);
  const { client } = clientWithoutWaits({ ...server.settings, partSize: MIB });
  await assert.rejects(client.asynch.upload(RECORDING), { name: 'UploadFailedError', status: 403 });
  assert.equal(server.deleted.size, 1);
  server.faults = ({ route }) =>
    route === 'part' || route === 'delete'
      ? { kind: 'answer', status: route === 'part' ? 403 : 500 }
      : undefined;
  await assert.rejects(client.asynch.upload(RECORDING), { name: 'UploadFailedError', status: 403 });
});

test('the first part that runs out of retries stops the others', async (t) => {
  const server = await flakyServer(t);
  server.faults = ({ route, part }) => {
    if (route !== 'part') return undefined;
    return part === 1 ? { kind: 'answer', status: 413 } : { kind: 'hang' };
  };
  const { client } = clientWithoutWaits({ ...server.settings, partSize: MIB, maxThreads: 2 });
  await assert.rejects(client.asynch.upload(scrambled(20 * MIB)), { status: 413 });
  assert(server.calls('part').length <= 2, `${server.calls('part').length} parts were sent`);
});

test('a presigned URL gets the part and its length, but never the key', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  await client.asynch.upload(RECORDING);
  const [call] = server.calls('part');
  assert.equal(call?.headers['x-api-key'], undefined);
  assert.equal(call?.headers['content-length'], String(RECORDING.length));
  assert.equal(call?.url.searchParams.get('signature'), 'secret-signature');
});

test('logs and errors never contain the key, a signature or the file name', async (t) => {
  const server = await flakyServer(t);
  server.faults = ({ route }) => (route === 'part' ? { kind: 'cut', afterBytes: 10 } : undefined);
  const { client, lines } = clientWithoutWaits({ ...server.settings, logLevel: 'debug' });
  const file = new File([RECORDING], 'my-therapist.wav');
  const error = await client.asynch.upload(file).catch((thrown: unknown) => thrown);
  assert(error instanceof UploadFailedError);
  assert(lines.length > 5);
  for (const text of [...lines, error.message, String(error.stack)]) {
    for (const secret of [KEY, 'secret-signature', 'my-therapist']) assert(!text.includes(secret), text);
  }
});

test('an abort stops the upload, throws the reason and logs how to resume', async (t) => {
  const server = await flakyServer(t);
  const aborter = new AbortController();
  const reason = new Error('the user went home');
  server.faults = ({ part }) => {
    if (part === 2) aborter.abort(reason);
    return part === null ? undefined : { kind: 'hang' };
  };
  const { client, lines } = clientWithoutWaits({ ...server.settings, partSize: MIB, logLevel: 'info' });
  await assert.rejects(client.asynch.upload(RECORDING, { signal: aborter.signal }), reason);
  assert.equal(server.deleted.size, 0);
  const [requestId = ''] = server.uploads.keys();
  assert(lines.some((line) => line.includes(`Continue it within 24 hours with resume: '${requestId}'`)));
});

test('an abort before the start sends nothing', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  const signal = AbortSignal.abort();
  await assert.rejects(client.asynch.upload(RECORDING, { signal }), { name: 'AbortError' });
  await assert.rejects(client.discrete.emotions(RECORDING, { signal }), { name: 'AbortError' });
  assert.equal(server.seen.length, 0);
});

test('an abort cancels the wait for a result', async (t) => {
  const server = await flakyServer(t);
  server.pendingPolls = 1000;
  const { client } = clientWithoutWaits(server.settings);
  const requestId = await client.asynch.upload(RECORDING);
  const aborter = new AbortController();
  const onProgress = () => aborter.abort();
  await assert.rejects(client.asynch.emotions(requestId, { signal: aborter.signal, onProgress }), {
    name: 'AbortError',
  });
  assert.equal(server.calls('prediction').length, 1);
});

test('a short recording is resent after lost connections', async (t) => {
  const server = await flakyServer(t);
  const broken: Fault[] = [{ kind: 'cut', afterBytes: 300_000 }, { kind: 'silent' }];
  server.faults = ({ time }) => broken[time];
  const stream = () => new Blob([RECORDING]).stream();
  for (const input of [RECORDING, new Blob([RECORDING]), stream()]) {
    server.seen.length = 0;
    const { client, waits } = clientWithoutWaits(server.settings);
    assert.deepEqual(await client.discrete.emotions(input), DISCRETE_ANSWER);
    assert.equal(waits.length, 2);
    assert(server.seen[2]?.body.includes(RECORDING));
  }
});

test('a short recording fails after three lost connections', async (t) => {
  const server = await flakyServer(t);
  server.faults = () => ({ kind: 'cut', afterBytes: 0 });
  const { client } = clientWithoutWaits({ ...server.settings, retryAttempts: 0 });
  await assert.rejects(client.discrete.emotions(RECORDING), {
    name: 'ConnectionFailedError',
    code: 'connection_failed',
    message: /\(after 2 retries\)$/,
  });
  assert.equal(server.seen.length, 3);
});

test('an abort cancels the wait before a short recording is retried', async (t) => {
  const server = await flakyServer(t);
  const aborter = new AbortController();
  server.faults = () => {
    aborter.abort();
    return { kind: 'answer', status: 503 };
  };
  const { client } = clientWithoutWaits(server.settings);
  const call = client.discrete.emotions(RECORDING, { signal: aborter.signal });
  await assert.rejects(call, { name: 'AbortError' });
  assert.equal(server.seen.length, 1);
});

test('a deletion whose response was lost is no error, although the retry finds no request', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  const requestId = await client.asynch.upload(RECORDING);
  server.faults = ({ route, time }) => (route === 'delete' && time === 0 ? { kind: 'silent' } : undefined);
  await client.asynch.delete(requestId);
  assert.equal(server.calls('delete').length, 2);
  assert(server.deleted.has(requestId));
  await assert.rejects(client.asynch.delete(requestId), { name: 'InvalidRequestIdError', status: 404 });
});

const OPERATIONS = {
  'discrete.emotions': (client: PlatformClient) => client.discrete.emotions(RECORDING),
  'asynch.upload': (client: PlatformClient) => client.asynch.upload(RECORDING),
  models: (client: PlatformClient) => client.models(),
};

for (const [name, operation] of Object.entries(OPERATIONS)) {
  test(`${name}: no server on this machine: an immediate error that says what to do`, async () => {
    const port = await freePort();
    for (const host of ['127.0.0.1', 'localhost']) {
      const baseUrl = `http://${host}:${port}/`;
      const { client, waits } = clientWithoutWaits({ apiKey: KEY, baseUrl, logLevel: 'error' });
      await assert.rejects(operation(client), (error) => {
        assert(error instanceof UndertoneError && error.cause instanceof Error);
        assert.equal(error.code, 'connection_failed');
        assert(error.message.includes(`No server is running at http://${host}:${port}.`), error.message);
        assert.match(error.message, /`undertone serve`.*SERVICE_URL/);
        return true;
      });
      assert.deepEqual(waits, []);
    }
  });

  test(`${name}: a connection refused by another machine is retried`, async () => {
    const refused = Object.assign(new Error('connect ECONNREFUSED 203.0.113.7:443'), {
      code: 'ECONNREFUSED',
    });
    const { client, waits } = clientWithoutWaits({
      apiKey: KEY,
      baseUrl: 'https://undertone.example',
      logLevel: 'error',
      retryAttempts: 2,
      fetch: () => Promise.reject(new TypeError('fetch failed', { cause: refused })),
    });
    await assert.rejects(operation(client), {
      code: 'connection_failed',
      message: /undertone\.example.*ECONNREFUSED.*\(after 2 retries\)/,
    });
    assert.equal(waits.length, 2);
  });
}

test('a Retry-After of more than a minute is thrown with its value', async (t) => {
  const server = await flakyServer(t);
  server.faults = () => ({ kind: 'answer', status: 503, headers: { 'retry-after': '61' } });
  const { client, waits } = clientWithoutWaits(server.settings);
  for (const call of [() => client.discrete.emotions(RECORDING), () => client.models()]) {
    await assert.rejects(call, { retryAfterSeconds: 61, message: /asks to wait 61 seconds/ });
  }
  assert.deepEqual([server.seen.length, waits.length], [2, 0]);
});
