import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Progress } from '../src/types.ts';
import { clientWithoutWaits, flakyServer, MIB, PLATFORMS, scrambled } from './support/clients.ts';

const RECORDING = scrambled(12 * MIB + 77);

for (const [name, platform] of Object.entries(PLATFORMS)) {
  test(`${name}: an upload interrupted five times is resumed and sends little more than the file`, async (t) => {
    const server = await flakyServer(t);
    let left = 0;
    server.faults = ({ route }) => {
      if (route !== 'part') return undefined;
      return left-- > 0 ? undefined : { kind: 'cut', afterBytes: 1000 };
    };
    const settings = { ...server.settings, partSize: MIB, maxThreads: 1 };
    let resume: string | undefined;
    for (let kill = 0; kill < 5; kill++) {
      left = 2;
      const { client } = clientWithoutWaits(settings, platform);
      const error = await client.asynch
        .upload(RECORDING, { maxRetries: 0, resume })
        .catch((thrown) => thrown);
      assert.equal(error.name, 'UploadFailedError');
      assert(error.requestId);
      resume = error.requestId;
    }
    left = Number.POSITIVE_INFINITY;
    const { client } = clientWithoutWaits({ ...server.settings, maxThreads: 1 }, platform);
    const told: Progress[] = [];
    const requestId = await client.asynch.upload(RECORDING, {
      resume,
      onProgress: (step) => told.push(step),
    });
    assert.equal(requestId, resume);
    assert(server.assembled(requestId).equals(RECORDING));
    const sent = server.calls('part').reduce((sum, { body }) => sum + body.length, 0);
    assert(sent <= RECORDING.length * 1.15, `${sent} bytes of ${RECORDING.length}`);
    assert.equal(server.calls('initiate').length, 1);
    assert((told[0]?.sentBytes ?? 0) >= 10 * MIB, 'what was there already counts as done');
  });
}

test('parts of another recording are not mixed with those on the server', async (t) => {
  const server = await flakyServer(t);
  server.faults = ({ part }) => (part === 3 ? { kind: 'answer', status: 500 } : undefined);
  const { client } = clientWithoutWaits({ ...server.settings, partSize: MIB, maxThreads: 1 });
  const error = await client.asynch.upload(RECORDING, { maxRetries: 0 }).catch((thrown) => thrown);
  server.faults = () => undefined;
  const changed = Buffer.from(RECORDING);
  changed.writeUInt8(changed.readUInt8(5) ^ 1, 5);
  for (const other of [changed, RECORDING.subarray(1), scrambled(100)]) {
    await assert.rejects(client.asynch.upload(other, { resume: error.requestId }), {
      name: 'UploadFailedError',
      code: 'other_recording',
    });
  }
  assert.equal(server.deleted.size, 0, 'the upload of the right file can still be continued');
  await client.asynch.upload(RECORDING, { resume: error.requestId });
});

test('URLs about to expire are renewed before a part is sent', async (t) => {
  const server = await flakyServer(t);
  server.addressSeconds = 30;
  server.faults = ({ route }) => {
    if (route === 'resume') server.addressSeconds = 3600;
    return undefined;
  };
  const { client } = clientWithoutWaits({ ...server.settings, partSize: MIB, maxThreads: 1 });
  assert(server.assembled(await client.asynch.upload(RECORDING)).equals(RECORDING));
  assert.equal(server.calls('resume').length, 1);
});

for (const operation of ['upload', 'submit'] as const) {
  test(`${operation}: a lost response is retried with the same key and creates one request`, async (t) => {
    const server = await flakyServer(t);
    const route = operation === 'upload' ? 'initiate' : 'submit';
    server.faults = (seen) => (seen.route === route && seen.time < 2 ? { kind: 'silent' } : undefined);
    const { client } = clientWithoutWaits(server.settings);
    const first = await client.asynch[operation](RECORDING);
    const second = await client.asynch[operation](RECORDING);
    assert.notEqual(first, second);
    assert.equal(server.uploads.size, 2);
    assert(server.assembled(first).equals(RECORDING));
    const keys = server.calls(route).map(({ headers }) => headers['idempotency-key']);
    assert.equal(keys.length, 4);
    assert.deepEqual([new Set(keys.slice(0, 3)).size, new Set(keys).size], [1, 2]);
  });
}
