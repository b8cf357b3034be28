import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KEY } from '@undertone/testing/flaky-server';
import {
  AuthenticationError,
  ConnectionFailedError,
  InvalidRequestIdError,
  NotFoundError,
  RateLimitError,
  RequestFailedError,
  RequestTimeoutError,
  UndertoneError,
  type UndertoneErrorCode,
  UploadFailedError,
} from '../src/index.ts';
import { clientWithoutWaits, flakyServer, scrambled } from './support/clients.ts';

const KINDS = [
  [401, AuthenticationError],
  [403, AuthenticationError],
  [404, NotFoundError],
  [408, RequestTimeoutError],
  [410, NotFoundError],
  [429, RateLimitError],
  [500, RequestFailedError],
] as const;

for (const [status, Kind] of KINDS) {
  test(`status ${status} is a ${Kind.name}, and the cause of a failed upload`, async (t) => {
    const server = await flakyServer(t);
    server.faults = () => ({ kind: 'answer', status });
    const { client } = clientWithoutWaits({ ...server.settings, retryAttempts: 1 });
    for (const call of [() => client.discrete.emotions(scrambled(10)), () => client.models()]) {
      await assert.rejects(call, (error) => {
        assert(error instanceof RequestFailedError && error instanceof UndertoneError);
        assert.deepEqual([error.constructor, error.name, error.status], [Kind, Kind.name, status]);
        return true;
      });
    }
    await assert.rejects(client.asynch.upload(scrambled(10)), (error) => {
      assert(error instanceof UploadFailedError && error.cause instanceof Kind);
      assert.equal(error.status, status);
      return true;
    });
  });
}

test('a lost connection is a ConnectionFailedError, and no response in time a RequestTimeoutError', async (t) => {
  const server = await flakyServer(t);
  server.faults = () => ({ kind: 'cut', afterBytes: 0 });
  const { client } = clientWithoutWaits({ ...server.settings, retryAttempts: 0 });
  await assert.rejects(client.models(), ConnectionFailedError);
  server.faults = () => ({ kind: 'hang' });
  await assert.rejects(client.models({ timeout: 20 }), RequestTimeoutError);
});

test('an unknown request ID is an InvalidRequestIdError, which is a NotFoundError', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  await assert.rejects(client.asynch.emotions('0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10'), (error) => {
    assert(error instanceof InvalidRequestIdError && error instanceof NotFoundError);
    assert.equal(error.code, 'not_found' satisfies UndertoneErrorCode);
    return true;
  });
});

test('the code of an error is typed: a misspelt one does not compile', () => {
  const { code } = new UndertoneError('');
  // @ts-expect-error there is no such code
  assert.equal(code === 'rate_limitd', false);
  assert.equal(code === 'rate_limited', false);
});

test('neither an error nor the log contains the key', async (t) => {
  const server = await flakyServer(t);
  server.faults = () => ({ kind: 'answer', status: 401 });
  const { client, lines } = clientWithoutWaits({ ...server.settings, logLevel: 'debug' });
  const error = await client.models().catch((thrown: unknown) => thrown);
  assert(error instanceof AuthenticationError);
  assert(!JSON.stringify([error, error.message, lines]).includes(KEY));
});
