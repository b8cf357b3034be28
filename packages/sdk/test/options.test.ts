import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { KEY } from '@undertone/testing/flaky-server';
import { browserPlatform } from '../src/platform/browser.ts';
import type { Logger } from '../src/types.ts';
import { clientWithoutWaits, collect, flakyServer, MIB, scrambled } from './support/clients.ts';

const RECORDING = scrambled(2 * MIB);
const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'));

test('custom headers go with every call to the server, but cannot replace the key', async (t) => {
  const server = await flakyServer(t);
  const headers = { 'X-Proxy-Token': 'abc', 'X-Api-Key': 'another' };
  const { client } = clientWithoutWaits({ ...server.settings, headers, partSize: MIB });
  await client.asynch.classify(RECORDING);
  await client.asynch.submit(RECORDING);
  await client.discrete.emotions(RECORDING);
  await client.models();
  assert.equal(server.seen.length, 8);
  for (const seen of server.seen) {
    assert.equal(seen.headers['x-proxy-token'], 'abc', seen.route);
    if (seen.route !== 'part') assert.equal(seen.headers['x-api-key'], KEY);
  }
});

test('custom headers do not go to the object store that takes the parts', async (t) => {
  const [server, store] = [await flakyServer(t), await flakyServer(t)];
  const { client } = clientWithoutWaits({
    ...{ ...server.settings, headers: { 'x-proxy-token': 'abc' } },
    fetch: async (input, init) => {
      if (String(input).startsWith(store.origin)) {
        // The store itself does not know the upload.
        await fetch(input, init);
        return new Response(null, { status: 200 });
      }
      const response = await fetch(input, init);
      const text = (await response.text()).replaceAll(`${server.origin}/v1/put`, `${store.origin}/v1/put`);
      return new Response(text, { status: String(input).includes('complete') ? 200 : response.status });
    },
  });
  await client.asynch.upload(RECORDING).catch(() => undefined);
  assert.equal(store.calls('part').length, 1);
  assert.equal(store.calls('part')[0]?.headers['x-proxy-token'], undefined);
  assert.equal(server.calls('initiate')[0]?.headers['x-proxy-token'], 'abc');
});

test('in Node the User-Agent names the version; a page leaves it to the browser', async (t) => {
  const server = await flakyServer(t);
  await clientWithoutWaits(server.settings).client.asynch.upload(RECORDING);
  for (const { headers } of server.seen) {
    assert.equal(headers['user-agent'], `undertone-sdk/${version} (node/${process.versions.node})`);
  }
  const custom = { ...server.settings, headers: { 'user-agent': 'mine/1' } };
  await clientWithoutWaits(custom).client.models();
  assert.equal(server.seen.at(-1)?.headers['user-agent'], 'mine/1');
  assert.deepEqual(browserPlatform.headers, {});
});

test('a logger gets the messages of its level and above, each at its own method', async (t) => {
  const server = await flakyServer(t);
  server.faults = ({ time }) => (time === 0 ? { kind: 'answer', status: 503 } : undefined);
  const told: [string, string][] = [];
  const method = (level: string) => (message: string) => void told.push([level, message]);
  const logger: Logger = {
    debug: method('debug'),
    info: method('info'),
    warn: method('warn'),
    error: method('error'),
  };
  const { client, lines } = clientWithoutWaits({ ...server.settings, logger, logLevel: 'debug' });
  await client.models();
  assert.deepEqual(
    told.map(([level]) => level),
    ['debug', 'warn', 'debug'],
  );
  assert.match(told[1]?.[1] ?? '', /^undertone warn: Listing the models: .* Retry 1 of 5/);
  assert.deepEqual(lines, []);
});

test('invalid headers and loggers are refused, without showing a value', () => {
  for (const [options, says] of [
    [{ headers: 'x' }, /headers must be an object/],
    [{ headers: { 'a b': 'secret-value' } }, /not valid in HTTP/],
    [{ headers: { a: 'secret-value\nb: c' } }, /not valid in HTTP/],
    [{ logger: {} }, /logger must have the methods debug, info, warn, error/],
  ] as const) {
    const { client } = clientWithoutWaits({ apiKey: 'k', ...options } as never);
    assert.throws(
      () => client.validateConfig(),
      (error) => {
        assert.match(String(error), says);
        assert.doesNotMatch(String(error), /secret-value/);
        return true;
      },
    );
  }
});

test('a token is made with the key and goes where a key goes', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  const { token, scope, expires_at } = await client.tokens.create({ expiresIn: 60, scope: 'discrete' });
  assert.deepEqual([token, scope], ['token-1', 'discrete']);
  assert(Date.parse(expires_at) > Date.now());
  const [call] = server.calls('tokens');
  assert.deepEqual(
    [call?.method, call?.url.pathname, call?.headers['x-api-key']],
    ['POST', '/v1/tokens', KEY],
  );
  assert.deepEqual(JSON.parse(call?.body.toString() ?? ''), { expires_in: 60, scope: 'discrete' });
  await client.tokens.create();
  assert.deepEqual(JSON.parse(server.calls('tokens')[1]?.body.toString() ?? ''), {});
  const page = clientWithoutWaits({ ...server.settings, apiKey: token }).client;
  await page.models().catch(() => undefined);
  assert.equal(server.seen.at(-1)?.headers['x-api-key'], token);
});

test('impossible tokens are refused before anything is sent', async (t) => {
  const server = await flakyServer(t);
  const { client } = clientWithoutWaits(server.settings);
  for (const expiresIn of [59, 3_601, 60.5]) {
    await assert.rejects(client.tokens.create({ expiresIn }), /whole number of seconds from 60 to 3600/);
  }
  await assert.rejects(
    client.tokens.create({ scope: 'write' as never }),
    /choose one of discrete, stream, all/,
  );
  assert.equal(server.seen.length, 0);
});

test('status tells the state of a request; only an unknown one throws', async (t) => {
  const server = await flakyServer(t);
  server.pendingPolls = 1;
  const { client } = clientWithoutWaits(server.settings);
  const request_id = await client.asynch.upload(RECORDING);
  const pending = { request_id, status: 'processing', progress: 0.5 };
  assert.deepEqual(await client.asynch.status(request_id), pending);
  assert.deepEqual(await client.asynch.status(request_id), { request_id, status: 'completed', progress: 1 });
  for (const [status, state, name] of [
    [422, 'failed', 'PredictionFailedError'],
    [410, 'expired', 'InvalidRequestIdError'],
  ] as const) {
    server.faults = () => ({ kind: 'answer', status });
    const { error, ...rest } = await client.asynch.status(request_id);
    assert.deepEqual([rest.status, error?.name, error?.requestId], [state, name, request_id]);
  }
  server.faults = () => undefined;
  const unknown = '0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10';
  await assert.rejects(client.asynch.status(unknown), { name: 'InvalidRequestIdError' });
  await assert.rejects(client.asynch.status('7'), { name: 'InvalidRequestIdError' });
});

test('listAll goes through all pages, and fetches no more than it needs', async (t) => {
  const server = await flakyServer(t);
  const pages = [['a', 'b'], ['c'], ['d']];
  server.faults = ({ url }) => {
    const page = Number(url.searchParams.get('cursor') ?? 0);
    const requests = pages[page]?.map((request_id) => ({ request_id }));
    const next_cursor = page < 2 ? String(page + 1) : null;
    const headers = { 'content-type': 'application/json' };
    return { kind: 'answer', status: 200, headers, body: JSON.stringify({ requests, next_cursor }) };
  };
  const { client } = clientWithoutWaits(server.settings);
  const all = await collect(client.asynch.listAll({ status: 'completed', limit: 2 }));
  assert.deepEqual(
    all.map(({ request_id }) => request_id),
    ['a', 'b', 'c', 'd'],
  );
  assert.deepEqual(
    server.seen.map(({ url }) => url.search),
    ['', '&cursor=1', '&cursor=2'].map((cursor) => `?status=completed&limit=2${cursor}`),
  );
  for await (const { request_id } of client.asynch.listAll()) {
    assert.equal(request_id, 'a');
    break;
  }
  assert.equal(server.seen.length, 4);
});
