import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_KEY_HEADER, type InitiateResult, PATHS } from '@undertone/contract';
import { type TestApp, testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { head, RawClient } from '@undertone/testing/socket';
import { refusal, streamUrl } from '@undertone/testing/stream-client';
import { WebSocket } from 'ws';
import { createLogger } from '../../src/index.ts';

const NO_TIMEOUT = 600_000;
const SHORT_MS = 200;

const service = await testApp();

async function refused({ app }: TestApp, reason: string): Promise<number> {
  const { body } = await app.inject({ url: PATHS.metrics });
  return Number(body.match(new RegExp(`connections_refused_total\\{reason="${reason}"\\} (\\d+)`))?.[1] ?? 0);
}

function connect(port: number): Promise<RawClient> {
  const client = new RawClient(port);
  return once(client.socket, 'connect').then(() => client);
}

const ask = (key: string) => head('GET', PATHS.models, { [API_KEY_HEADER]: key });

test('connections without a key never keep out a known key or /healthz, however many there are', async () => {
  const connectionLimits = { max: 40, maxUnknown: 20, maxUnknownPerAddress: 20, unknownMs: NO_TIMEOUT };
  const lines: string[] = [];
  const logger = createLogger('warn', { write: (line) => lines.push(line) });
  const service = await testApp({}, { connectionLimits, logger });
  const { port } = await service.listen();
  const known = (await connect(port)).send(ask(service.key));
  assert.equal((await known.answer()).status, 200);
  const idle: RawClient[] = [];
  for (let i = 0; i < 60; i++) idle.push(await connect(port));
  const newcomer = (await connect(port)).send(ask(service.key));
  assert.equal((await newcomer.answer()).status, 200);
  const probe = (await connect(port)).send(head('GET', PATHS.health, {}));
  assert.equal((await probe.answer()).status, 200);
  assert.equal((await known.send(ask(service.key)).answer()).status, 200, 'a known one is never closed');
  assert.ok((await refused(service, 'too_many')) >= 40);
  while (lines.length === 0) await sleep(20);
  const { refused: counts, msg } = JSON.parse(lines[0] ?? '');
  assert.ok(counts.too_many > 0, msg);
  for (const client of [...idle, known, newcomer, probe]) client.destroy();
});

test('idle connections of one key never keep out another one', async () => {
  const connectionLimits = { max: 20, maxUnknown: 10, maxUnknownPerAddress: 10, unknownMs: NO_TIMEOUT };
  const service = await testApp({}, { connectionLimits });
  const { port } = await service.listen();
  const { key } = await service.stores.keys.create('another');
  const idle: RawClient[] = [];
  for (let i = 0; i < 40; i++) {
    const client = (await connect(port)).send(ask(service.key));
    assert.equal((await client.answer()).status, 200);
    idle.push(client);
  }
  const other = (await connect(port)).send(ask(key));
  assert.equal((await other.answer()).status, 200);
  assert.ok(idle.filter(({ socket }) => !socket.destroyed).length <= 11);
  for (const client of [...idle, other]) client.destroy();
});

test('connections that send parts count for the owner of the upload', async () => {
  const connectionLimits = { max: 20, maxUnknown: 10, maxUnknownPerAddress: 10, unknownMs: NO_TIMEOUT };
  const service = await testApp({}, { connectionLimits });
  const { port, url } = await service.listen();
  const { key } = await service.stores.keys.create('another');
  /** A connection that has sent a part of its own upload. */
  async function sendPart(asynch: AsynchClient): Promise<RawClient> {
    const upload = (await (await asynch.initiate({})).json()) as InitiateResult;
    const path = upload.presigned_urls[0]?.url.slice(url.length) ?? '';
    const client = (await connect(port)).send(`${head('PUT', path, { 'content-length': 1 })}x`);
    assert.equal((await client.answer()).status, 200);
    return client;
  }
  const other = await sendPart(new AsynchClient(url, key));
  const many: RawClient[] = [];
  for (let i = 0; i < 30; i++) many.push(await sendPart(new AsynchClient(url, service.key)));
  assert.equal((await other.send(ask(key)).answer()).status, 200);
  for (const client of [...many, other]) client.destroy();
});

test('a connection that carries many owners counts for one of them, without a warning about listeners', async (t) => {
  const connectionLimits = { max: 20, maxUnknown: 10, maxUnknownPerAddress: 10, unknownMs: NO_TIMEOUT };
  const service = await testApp({}, { connectionLimits });
  const { port } = await service.listen();
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);
  process.on('warning', onWarning);
  t.after(() => process.off('warning', onWarning));
  const proxy = await connect(port);
  for (let i = 0; i < 12; i++) {
    const { key } = await service.stores.keys.create(`owner ${i}`);
    assert.equal((await proxy.send(ask(key)).answer()).status, 200);
  }
  assert.deepEqual(warnings, []);
  proxy.destroy();
});

test('connections without a key are closed when they say nothing; one with a key stays', async () => {
  const service = await testApp({}, { connectionLimits: { unknownMs: SHORT_MS } });
  const { port } = await service.listen();
  const known = (await connect(port)).send(ask(service.key));
  assert.equal((await known.answer()).status, 200);
  const silent = await connect(port);
  const answered = (await connect(port)).send(head('GET', PATHS.health, {}));
  assert.equal((await answered.answer()).status, 200);
  const wrongKey = (await connect(port)).send(ask('wrong'));
  assert.equal((await wrongKey.answer()).status, 401);
  await Promise.all([silent.closed, answered.closed, wrongKey.closed]);
  assert.equal(await refused(service, 'timeout'), 1, 'an answered connection that idles is not refused');
  assert.equal((await known.send(ask(service.key)).answer()).status, 200);
  known.destroy();
});

test('upgrades without a key get the same answer on every path', async () => {
  const { url } = await service.listen();
  for (const path of [PATHS.stream, PATHS.models, PATHS.discrete, '/v1/nothing-here']) {
    assert.equal((await refusal(new URL(path, streamUrl(url)).href)).status, 401, path);
  }
});

const open = async (service: TestApp) => {
  const { url } = await service.listen();
  const socket = new WebSocket(`${url.replace('http', 'ws')}${PATHS.socketIo}?EIO=4&transport=websocket`);
  socket.on('error', () => undefined);
  const closed = once(socket, 'close');
  await once(socket, 'message');
  return { socket, closed };
};
const poll = async (service: TestApp, sid = '', body?: string) => {
  const { url } = await service.listen();
  const query = `?EIO=4&transport=polling${sid && `&sid=${sid}`}`;
  const init = body === undefined ? {} : { method: 'POST', body };
  const response = await fetch(url + PATHS.socketIo + query, init);
  return { status: response.status, text: await response.text() };
};
const sidOf = (text: string) => JSON.parse(text.slice(1)).sid as string;

test('Socket.IO: an unfinished frame is cut off after a few kB', async () => {
  const before = await refused(service, 'too_much_data');
  const sockets = await Promise.all(Array.from({ length: 24 }, () => open(service)));
  for (const { socket } of sockets) socket.send('x'.repeat(100_000), { fin: false });
  await Promise.all(sockets.map(({ closed }) => closed));
  assert.equal(await refused(service, 'too_much_data'), before + 24);
});

test('Socket.IO: a large message over polling is refused', async () => {
  const sid = sidOf((await poll(service)).text);
  const before = await refused(service, 'too_much_data');
  assert.equal((await poll(service, sid, 'x'.repeat(100_000))).status, 413);
  assert.equal(await refused(service, 'too_much_data'), before + 1);
});

test('Socket.IO: a client that sends no key is cut off', async () => {
  const service = await testApp({}, { connectionLimits: { unknownMs: SHORT_MS } });
  const { closed } = await open(service);
  await closed;
  const sid = sidOf((await poll(service)).text);
  while ((await poll(service, sid)).status === 200);
});

test('Socket.IO: a client that leaves its namespace loses its connection', async () => {
  const { socket, closed } = await open(service);
  socket.send(`40${JSON.stringify({ api_key: service.key })}`);
  await once(socket, 'message');
  socket.send('41');
  await closed;
});

test('Socket.IO: a known client that does not read its events is cut off', async () => {
  const sid = sidOf((await poll(service)).text);
  await poll(service, sid, `40${JSON.stringify({ api_key: service.key })}`);
  while (!(await poll(service, sid)).text.includes('connected'));
  const invalid = Array.from({ length: 300 }, () => '42["message",{}]').join('\x1e');
  await poll(service, sid, invalid);
  assert.equal((await poll(service, sid)).status, 400, 'its session is gone');
});

test('SERVICE_SOCKET_IO=false turns it off', async () => {
  const { app, key } = await testApp({ SERVICE_SOCKET_IO: 'false' });
  const url = `${PATHS.socketIo}?EIO=4&transport=polling`;
  assert.equal((await app.inject({ url })).statusCode, 401);
  assert.equal((await app.inject({ url, headers: { [API_KEY_HEADER]: key } })).statusCode, 404);
});
