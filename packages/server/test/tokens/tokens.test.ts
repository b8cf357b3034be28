import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { API_KEY_HEADER, PATHS, type TokenResult, type TokenScope } from '@undertone/contract';
import { postFile, readProblem, type TestApp, testApp } from '@undertone/testing/app';
import { encode, voiceAt } from '@undertone/testing/stream-audio';
import { refusal, StreamClient, streamUrl } from '@undertone/testing/stream-client';
import fc from 'fast-check';
import { io, type Socket } from 'socket.io-client';
import { WebSocket } from 'ws';

const clock = { ms: Date.now() };
const service = await testApp({}, { now: () => clock.ms });
const voice = await readFile(new URL('../../../../examples/voices/angry-1013.wav', import.meta.url));
const PHONE = { sample_rate: 8_000, encoding: 'mulaw' };

const ask = (credential: string, payload?: object, to = service) =>
  to.app.inject({
    method: 'POST',
    url: PATHS.tokens,
    headers: { [API_KEY_HEADER]: credential },
    ...(payload && { payload }),
  });

async function token(
  scope: TokenScope = 'all',
  { to = service, key = to.key }: { to?: TestApp; key?: string } = {},
): Promise<string> {
  return (await ask(key, { scope }, to)).json<TokenResult>().token;
}

const get = (url: string, credential: string, to = service) =>
  to.app.inject({ url, headers: { [API_KEY_HEADER]: credential } });

const post = (url: string, credential: string) =>
  postFile(service, voice, { url, headers: { [API_KEY_HEADER]: credential } });

async function connectSocketIo(to: TestApp, credential: string): Promise<Socket> {
  const { url } = await to.listen();
  return io(url, { auth: { api_key: credential }, reconnection: false, forceNew: true });
}

async function joins(socket: Socket): Promise<string> {
  const outcome = await new Promise<string>((resolve) => {
    socket.once('connected', () => resolve('connected'));
    socket.once('connect_error', (error: Error & { data?: { code: string } }) =>
      resolve(error.data?.code ?? error.message),
    );
  });
  socket.disconnect();
  return outcome;
}

describe('making a token', () => {
  test('takes ten minutes and every scope without a body, and says when it expires', async () => {
    const response = await ask(service.key);
    assert.equal(response.statusCode, 200);
    assert.equal(response.headers['cache-control'], 'no-store');
    const { token, expires_at, scope } = response.json<TokenResult>();
    assert.match(token, /^utt_/);
    assert.equal(scope, 'all');
    assert.equal(Date.parse(expires_at), Math.floor(clock.ms / 1000) * 1000 + 600_000);
  });

  test('takes 60 to 3600 seconds and three scopes, and refuses others', async () => {
    for (const body of [
      { expires_in: 60 },
      { expires_in: 3_600 },
      { scope: 'discrete' },
      { scope: 'stream' },
    ])
      assert.equal((await ask(service.key, body)).statusCode, 200, JSON.stringify(body));
    for (const body of [{ expires_in: 59 }, { expires_in: 3_601 }, { expires_in: 90.5 }, { scope: 'admin' }])
      readProblem(await ask(service.key, body), 'bad_request');
  });

  test('needs a key: no token makes tokens', async () => {
    readProblem(await service.app.inject({ method: 'POST', url: PATHS.tokens }), 'missing_api_key');
    for (const scope of ['discrete', 'stream', 'all'] as const)
      readProblem(await ask(await token(scope)), 'forbidden');
  });

  test('no token reads the webhook secret, which would outlive it', async () => {
    const url = '/v1/asynch/webhook-secret';
    assert.equal((await get(url, service.key)).statusCode, 200);
    readProblem(await get(url, await token()), 'forbidden');
  });
});

describe('a token goes where a key goes', () => {
  test('in x-api-key and as a bearer', async () => {
    const all = await token();
    assert.equal((await get(PATHS.models, all)).statusCode, 200);
    const headers = { authorization: `Bearer ${all}` };
    assert.equal((await service.app.inject({ url: PATHS.models, headers })).statusCode, 200);
  });

  test('as a WebSocket subprotocol', async () => {
    const { url } = await service.listen();
    const socket = new WebSocket(streamUrl(url), ['undertone.v1', `apikey.${await token('stream')}`]);
    await once(socket, 'open');
    socket.close();
  });

  test('in the handshake of Socket.IO', async () => {
    for (const scope of ['stream', 'all'] as const)
      assert.equal(await joins(await connectSocketIo(service, await token(scope))), 'connected');
  });

  test('and owns what its key owns', async () => {
    const initiate = '/v1/asynch/upload/initiate?file_name=talk.wav&part_count=1';
    const started = await service.app.inject({
      method: 'POST',
      url: initiate,
      headers: { [API_KEY_HEADER]: await token() },
    });
    const { request_id } = started.json();
    assert.equal((await get(`/v1/asynch/upload/${request_id}`, service.key)).statusCode, 200);
    const other = await service.stores.keys.create('other');
    readProblem(
      await get(`/v1/asynch/upload/${request_id}`, await token('all', { key: other.key })),
      'not_found',
    );
  });
});

describe('scopes', () => {
  test('discrete covers both paths for short recordings and nothing else', async () => {
    const discrete = await token('discrete');
    for (const path of [PATHS.discrete, PATHS.discreteShort])
      assert.equal((await post(path, discrete)).json().main_emotion, 'angry', path);
    for (const path of [PATHS.models, '/v1/asynch/requests', '/v1/rate-limit/status', PATHS.stream])
      readProblem(await get(path, discrete), 'forbidden');
    const { url } = await service.listen();
    readProblem(await refusal(streamUrl(url), { headers: { [API_KEY_HEADER]: discrete } }), 'forbidden');
    assert.equal(await joins(await connectSocketIo(service, discrete)), 'forbidden');
  });

  test('stream covers live audio and nothing else', async () => {
    const stream = await token('stream');
    for (const path of [PATHS.discrete, PATHS.discreteShort])
      readProblem(await post(path, stream), 'forbidden');
    for (const path of [PATHS.models, '/v1/asynch/requests'])
      readProblem(await get(path, stream), 'forbidden');
  });

  test('all covers both', async () => {
    const all = await token('all');
    assert.equal((await post(PATHS.discrete, all)).statusCode, 200);
    const { url } = await service.listen();
    const socket = new WebSocket(streamUrl(url), protocols(all));
    await once(socket, 'open');
    socket.close();
  });

  test('an unknown path stays 404', async () => {
    readProblem(await get('/v1/nothing', await token('discrete')), 'not_found');
  });
});

describe('the end of a token', () => {
  test('is its expiry, which does not count as a wrong key', async () => {
    const all = await token();
    clock.ms += 599_000;
    assert.equal((await get(PATHS.models, all)).statusCode, 200);
    clock.ms += 1_000;
    for (let i = 0; i < 30; i++) {
      const { detail } = readProblem(await get(PATHS.models, all), 'invalid_api_key');
      assert.equal(detail, 'This token has expired. Get a new one.');
    }
  });

  test('is that of its key, revoked or expired, within a minute', async () => {
    const expiresAt = new Date(clock.ms + 120_000);
    const revoked = await service.stores.keys.create('revoked');
    const expiring = await service.stores.keys.create('expiring', { expiresAt });
    const tokens = [
      await token('all', { key: revoked.key }),
      await token('all', { key: expiring.key }),
    ] as const;
    for (const one of tokens) assert.equal((await get(PATHS.models, one)).statusCode, 200);
    await service.stores.keys.revoke(revoked.record.id);
    clock.ms += 60_000;
    readProblem(await get(PATHS.models, tokens[0]), 'invalid_api_key');
    assert.equal((await get(PATHS.models, tokens[1])).statusCode, 200);
    clock.ms += 61_000;
    readProblem(await get(PATHS.models, tokens[1]), 'invalid_api_key');
  });

  test('for SERVICE_API_KEY comes with another key in the same variable', async () => {
    const before = await testApp({
      SERVICE_API_KEY: 'the-first-key-of-all',
      SERVICE_SECRET: 'the same secret here',
    });
    const own = await token('all', { to: before, key: 'the-first-key-of-all' });
    assert.equal((await get(PATHS.models, own, before)).statusCode, 200);
    const after = await testApp({
      SERVICE_API_KEY: 'another-key-instead',
      SERVICE_SECRET: 'the same secret here',
    });
    readProblem(await get(PATHS.models, own, after), 'invalid_api_key');
  });

  test('is no end of an open stream, but revoking its key is', async () => {
    const { key, record } = await service.stores.keys.create('leaving');
    const { url } = await service.listen();
    const stream = new StreamClient(url, await token('stream', { key }), PHONE);
    await once(stream.socket, 'open');
    const second = encode((await voiceAt('angry-1013.wav', 8_000, 1)).subarray(0, 8_000), 'mulaw');
    clock.ms += 3_600_000;
    for (let i = 0; i < 10; i++) stream.send(second);
    await stream.received(3);
    assert.equal(stream.predictions.length, 2);
    await service.stores.keys.revoke(record.id);
    clock.ms += 60_000;
    for (let i = 0; i < 5; i++) stream.send(second);
    assert.deepEqual(await stream.closed, { code: 1008, reason: 'invalid_api_key' });
  });
});

test('requests with tokens count for their key', async () => {
  const limited = await testApp({ SERVICE_RATE_LIMIT: '3' });
  const first = await token('all', { to: limited });
  const second = await token('all', { to: limited });
  assert.equal((await get(PATHS.models, first, limited)).statusCode, 200);
  readProblem(await get(PATHS.models, second, limited), 'rate_limited');
  readProblem(await get(PATHS.models, limited.key, limited), 'rate_limited');
});

test('a token with any character changed, added or left out is refused', async () => {
  const all = await token();
  const { tokens } = service.services;
  assert.ok(await tokens.authenticate(all));
  const index = fc.nat(all.length - 1);
  const characters = fc.stringMatching(/^[\w.-]{0,3}$/);
  await fc.assert(
    fc.asyncProperty(index, fc.nat(3), characters, async (at, length, replacement) => {
      const changed = all.slice(0, at) + replacement + all.slice(at + length);
      fc.pre(changed !== all);
      assert.equal(await tokens.authenticate(changed), null, changed);
    }),
    { numRuns: 500 },
  );
  // Every character of the signature, the last of which has bits that no byte needs.
  for (let at = 0; at < all.length; at++) {
    const changed = `${all.slice(0, at)}${all[at] === 'A' ? 'B' : 'A'}${all.slice(at + 1)}`;
    assert.equal(await tokens.authenticate(changed), null, changed);
  }
  readProblem(await get(PATHS.models, `${all}x`), 'invalid_api_key');
  const elsewhere = await testApp();
  readProblem(await get(PATHS.models, all, elsewhere), 'invalid_api_key');
});

function protocols(credential: string): string[] {
  return ['undertone.v1', `apikey.${credential}`];
}
