import assert from 'node:assert/strict';
import { test } from 'node:test';
import { postFile, type TestApp, testApp } from '@undertone/testing/app';
import { cut, encode, voiceAt } from '@undertone/testing/stream-audio';
import { StreamClient } from '@undertone/testing/stream-client';
import { writeWav } from '@undertone/testing/wav';
import { io, type Socket } from 'socket.io-client';

type Transport = 'polling' | 'websocket';

const service = await testApp();
const samples = await voiceAt('happy-1064.wav', 44_100, 6);
const bytes = encode(samples);

/** Connects as existing clients do. */
async function connect(
  to: TestApp,
  { key = to.key, transports = ['polling', 'websocket'] as Transport[] } = {},
) {
  const { url } = await to.listen();
  const socket = io(url, { auth: { api_key: key }, transports, reconnection: false, forceNew: true });
  const heard: Data[] = [];
  socket.on('prediction', (data) => heard.push(data));
  return { socket, heard, connected: next(socket, 'connected') };
}

/** The payload of any event. */
interface Data {
  session_id?: string;
  main_emotion?: string;
  confidence?: number;
  all_predictions?: object;
  timestamp?: number;
  error?: string;
  message?: string;
  data?: { code: string };
}

function next(socket: Socket, event: string): Promise<Data> {
  return new Promise((resolve) => socket.once(event, resolve));
}

const audio = (piece: Buffer, more: object = {}) => ({
  service: 'emotion',
  action: 'prediction',
  model: '4emotions',
  payload: piece.toString('base64'),
  ...more,
});

for (const transports of [['polling'], ['websocket'], ['polling', 'websocket']] as Transport[][]) {
  test(`a voice over ${transports.join(' and then ')} gets the same answer as a short recording`, async () => {
    const discrete = (await postFile(service, writeWav(samples.subarray(0, 5 * 44_100)))).json();
    const { socket, connected } = await connect(service, { transports });
    assert.equal((await connected).session_id, socket.id);
    const prediction = next(socket, 'prediction');
    // As an object and as JSON text, in pieces of odd length.
    for (const [i, piece] of cut(bytes, [44_101]).entries()) {
      socket.emit('message', i % 2 === 0 ? audio(piece) : JSON.stringify(audio(piece)));
    }
    const { timestamp, ...result } = await prediction;
    assert.deepEqual(result, discrete);
    assert.ok(Math.abs(Number(timestamp) - Date.now()) < 60_000);
    socket.disconnect();
  });
}

test('every full 5 s gets a prediction, silence included, at the sample rate of the messages', async () => {
  const { socket, heard, connected } = await connect(service);
  await connected;
  const silence = Buffer.alloc(8_000 * 2 * 4);
  for (let i = 0; i < 4; i++)
    socket.emit('message', audio(silence, { sample_rate: 8_000, model: '7emotions' }));
  while (heard.length < 3) await next(socket, 'prediction');
  assert.equal(Object.keys(heard[0]?.all_predictions ?? {}).length, 7);
  assert.ok(Number(heard[0]?.confidence) < 0.38);
  socket.disconnect();
});

test('a wrong or missing key is refused when connecting', async () => {
  const { url } = await service.listen();
  for (const auth of [{ api_key: 'wrong' }, {}, { api_key: { not: 'a text' } }]) {
    const socket = io(url, { auth, reconnection: false, forceNew: true });
    const error = await next(socket, 'connect_error');
    assert.match(error.message ?? '', /API key/);
    assert.match(error.data?.code ?? '', /^(invalid|missing)_api_key$/);
    socket.disconnect();
  }
});

test('an invalid message gets an error event, and the stream continues', async () => {
  const { socket, connected } = await connect(service);
  await connected;
  for (const wrong of [
    'no JSON',
    null,
    7,
    {},
    { ...audio(bytes), service: 'weather' },
    { ...audio(bytes), payload: 5 },
    audio(bytes.subarray(0, 100), { sample_rate: 7 }),
    audio(bytes.subarray(0, 100), { model: '6emotions' }),
    audio(Buffer.alloc(11 * 8_000 * 2), { sample_rate: 8_000 }),
  ]) {
    const error = next(socket, 'error');
    socket.emit('message', wrong);
    assert.equal(typeof (await error).error, 'string');
  }
  const prediction = next(socket, 'prediction');
  socket.emit('message', audio(bytes));
  assert.ok((await prediction).main_emotion);
  socket.disconnect();
});

test('audio beyond the queue limit is dropped with a warning', async () => {
  const { socket, connected } = await connect(service, { transports: ['websocket'] });
  await connected;
  const warning = next(socket, 'warning');
  const tenSeconds = audio(Buffer.alloc(10 * 48_000 * 2), { sample_rate: 48_000 });
  for (let i = 0; i < 20; i++) socket.emit('message', tenSeconds);
  assert.match(String((await warning).message), /dropped/);
  socket.disconnect();
});

test('a prediction that takes too long closes the connection as overloaded', async () => {
  const slow = await testApp({}, { streamTimes: { lagMs: 0 } });
  const { socket, connected } = await connect(slow);
  await connected;
  const error = next(socket, 'error');
  const gone = next(socket, 'disconnect');
  socket.emit('message', audio(bytes));
  assert.match(String((await error).error), /busy/);
  await gone;
});

test('a message that does not fit into memory ends the connection', async () => {
  const small = await testApp({}, { heldBytes: 4_000_000 });
  const transports: Transport[] = ['websocket'];
  const { socket, connected } = await connect(small, { transports });
  await connected;
  const gone = next(socket, 'disconnect');
  socket.emit('message', audio(Buffer.alloc(1_700_000), { sample_rate: 96_000 }));
  await gone;
  const { socket: other, connected: again } = await connect(small, { transports });
  await again;
  const prediction = next(other, 'prediction');
  for (const piece of cut(bytes, [100_000])) other.emit('message', audio(piece));
  await prediction;
  other.disconnect();
  while (small.services.streams.held.byOwner().size > 0) await new Promise((done) => setTimeout(done, 10));
});

test('revoking a key closes its idle connections', async () => {
  const own = await testApp({}, { streamTimes: { recheckMs: 50 } });
  const { key, record } = await own.stores.keys.create('leaving');
  const { socket, connected } = await connect(own, { key });
  await connected;
  const error = next(socket, 'error');
  const gone = next(socket, 'disconnect');
  await own.stores.keys.revoke(record.id);
  assert.match(String((await error).error), /revoked/);
  await gone;
});

test('WebSocket and Socket.IO streams share the limits of a key', async () => {
  const small = await testApp({ SERVICE_STREAM_LIMIT: '1', SERVICE_RATE_LIMIT: '3' });
  const { socket: first, connected } = await connect(small);
  await connected;
  await assert.rejects(StreamClient.open(small), /429/);
  const { socket: second } = await connect(small);
  assert.match((await next(second, 'connect_error')).message ?? '', /open streams/);
  // The fourth request of the minute.
  const { socket: third } = await connect(small);
  assert.match((await next(third, 'connect_error')).message ?? '', /requests per minute/);
  for (const socket of [first, second, third]) socket.disconnect();
});

test('shutdown notifies connected clients and closes their connections', async () => {
  const stopping = await testApp();
  const clients = [
    await connect(stopping, { transports: ['polling'] }),
    await connect(stopping, { transports: ['websocket'] }),
  ];
  for (const { connected } of clients) await connected;
  const told = clients.map(({ socket }) => next(socket, 'error'));
  const gone = clients.map(({ socket }) => next(socket, 'disconnect'));
  await stopping.app.close();
  for (const error of await Promise.all(told)) assert.match(String(error.error), /stopping/);
  await Promise.all(gone);
});
