import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { PATHS, STREAM_ENCODINGS, STREAM_LIMITS } from '@undertone/contract';
import * as schemas from '@undertone/contract/schemas';
import { postFile, readProblem, sharedClassifier, testApp } from '@undertone/testing/app';
import {
  cut,
  ENCODING_IN_WAV,
  encode,
  interleave,
  voiceAt,
  voiceNames,
} from '@undertone/testing/stream-audio';
import { refusal, StreamClient, streamUrl } from '@undertone/testing/stream-client';
import { writeWav } from '@undertone/testing/wav';
import Value from 'typebox/value';
import { WebSocket } from 'ws';
import { createLogger } from '../../src/index.ts';
import { defaultLimits } from '../../src/settings.ts';

const service = await testApp();
const names = await voiceNames();
const angry = await voiceAt('angry-1013.wav', 8_000, 11);
const sad = await voiceAt('sad-1028.wav', 8_000, 11);
const PHONE = { sample_rate: 8_000, encoding: 'mulaw' };

const result = ({ main_emotion, confidence, all_predictions }: Record<string, unknown>) => ({
  main_emotion,
  confidence,
  all_predictions,
});

describe('a conversation', () => {
  test('gets ready, a prediction every 5 s and done; each message matches its schema', async () => {
    const client = await StreamClient.open(service, { ...PHONE, model: '7emotions' });
    client.send(encode(angry, 'mulaw'));
    assert.deepEqual(await client.end(), { code: 1000, reason: '' });
    const [ready, first, second, tail, done] = client.messages;
    const { session_id, ...settings } = ready as { session_id?: string };
    assert.ok(session_id);
    assert.deepEqual(settings, {
      type: 'ready',
      model: '7emotions',
      sample_rate: 8_000,
      encoding: 'mulaw',
      channels: 1,
      interval: 5,
    });
    assert.ok(Value.Check(schemas.StreamReady, ready));
    for (const message of [first, second, tail]) assert.ok(Value.Check(schemas.StreamPrediction, message));
    assert.deepEqual(
      client.predictions.map(({ t, start, end, channel }) => [t, start, end, channel]),
      [
        ['00:00', 0, 5, 0],
        ['00:05', 5, 10, 0],
        ['00:06', 6, 11, 0],
      ],
    );
    assert.equal(Object.keys(client.predictions[0]?.all_predictions ?? {}).length, 7);
    assert.ok((client.predictions[0]?.speech_seconds ?? 0) > 1);
    assert.deepEqual(done, { type: 'done', duration_seconds: 11 });
    assert.equal(client.messages.length, 5);
  });

  // Voices at four sample rates, with the encodings in rotation: every rate meets every encoding.
  for (const [turn, name] of names.filter((_, i) => i % 3 === 0).entries()) {
    test(`${name} gets the same prediction as in the discrete interface, at 8, 16, 44.1 and 48 kHz`, async () => {
      for (const [shift, sample_rate] of [8_000, 16_000, 44_100, 48_000].entries()) {
        const encoding = STREAM_ENCODINGS[(turn + shift) % STREAM_ENCODINGS.length] ?? 'pcm_s16le';
        const samples = await voiceAt(name, sample_rate, 5);
        const file = writeWav(samples, { sampleRate: sample_rate, encoding: ENCODING_IN_WAV[encoding] });
        const client = await StreamClient.open(service, { sample_rate, encoding });
        const [discrete] = await Promise.all([
          postFile(service, file),
          client.send(...cut(encode(samples, encoding), [1_765, 882])).end(),
        ]);
        assert.deepEqual(result({ ...client.predictions[0] }), discrete.json(), `${sample_rate} ${encoding}`);
        assert.equal(client.predictions.length, 1);
      }
    });
  }

  test('two channels are analysed separately, channel 0 first', async () => {
    const alone = [];
    for (const samples of [angry, sad]) {
      const client = await StreamClient.open(service, { sample_rate: 8_000 });
      await client.send(encode(samples)).end();
      alone.push(client.predictions);
    }
    const both = await StreamClient.open(service, { sample_rate: 8_000, channels: 2 });
    await both.send(...cut(interleave(encode(angry), encode(sad), 2), [10_001])).end();
    const [left = [], right = []] = alone;
    const expected = left.flatMap((prediction, i) => [prediction, { ...right[i], channel: 1 }]);
    assert.deepEqual(both.predictions, expected);
    assert.notDeepEqual(result({ ...left[0] }), result({ ...right[0] }));
  });

  test('predictions do not depend on how the audio is split into messages', async () => {
    const bytes = encode(angry, 'pcm_f32le');
    const query = { sample_rate: 8_000, encoding: 'pcm_f32le', interval: 2 };
    const answers = [];
    for (const sizes of [[bytes.length], [1, 3, 4_999], [65_537, 0, 7]]) {
      const client = await StreamClient.open(service, query);
      await client.send(...cut(bytes, sizes)).end();
      answers.push(client.messages.slice(1));
    }
    assert.equal(answers[0]?.length, 6);
    assert.deepEqual(answers[1], answers[0]);
    assert.deepEqual(answers[2], answers[0]);
  });

  test('predictions arrive while audio is still being sent', async () => {
    const client = await StreamClient.open(service, PHONE);
    client.send(encode(angry.subarray(0, 40_000), 'mulaw'));
    await client.received(2);
    assert.equal(client.messages[1]?.type, 'prediction');
    client.socket.terminate();
  });
});

describe('refused at the upgrade with a problem', () => {
  const headers = { 'x-api-key': service.key };

  test('missing or wrong key', async () => {
    const { url } = await service.listen();
    readProblem(await refusal(streamUrl(url)), 'missing_api_key');
    readProblem(await refusal(streamUrl(url), { headers: { 'x-api-key': 'wrong' } }), 'invalid_api_key');
  });

  test('invalid query', async () => {
    const { url } = await service.listen();
    for (const query of [
      { sample_rate: 7_999 },
      { sample_rate: 192_001 },
      { encoding: 'mp3' },
      { channels: 3 },
      { interval: 0 },
      { interval: 11 },
      { interval: 1.5 },
    ] as Record<string, string | number>[]) {
      readProblem(await refusal(streamUrl(url, query), { headers }), 'bad_request');
    }
    readProblem(await refusal(streamUrl(url, { model: '6emotions' }), { headers }), 'unknown_model');
  });

  test('WebSocket on another path, plain HTTP on this path', async () => {
    const { url } = await service.listen();
    const models = url.replace(/^http/, 'ws') + PATHS.models;
    readProblem(await refusal(models, { headers }), 'bad_request');
    readProblem(await refusal(`${models}/nothing`, { headers }), 'not_found');
    readProblem(await service.app.inject({ url: PATHS.stream, headers }), 'bad_request');
  });

  test('stream limit of a key reached: 429 until one closes', async () => {
    const small = await testApp({ SERVICE_STREAM_LIMIT: '2' });
    const { url } = await small.listen();
    const [first] = [await StreamClient.open(small), await StreamClient.open(small)];
    const more = await refusal(streamUrl(url), { headers: { 'x-api-key': small.key } });
    readProblem(more, 'rate_limited');
    assert.equal(more.headers['retry-after'], '1');
    const { key: other } = await small.stores.keys.create('other');
    await once(new StreamClient(url, other).socket, 'open');
    first?.socket.close();
    await waitUntil(async () => (await streamsOpen(small)) === 2);
    await StreamClient.open(small);
  });

  test('stream limit of the process reached: 503 for every key until one closes', async () => {
    const small = await testApp({ SERVICE_STREAM_TOTAL_LIMIT: '2' });
    const { url } = await small.listen();
    const { key } = await small.stores.keys.create('another');
    const open = [await StreamClient.open(small), await StreamClient.open(small)];
    const retryAfter = new Set<unknown>();
    for (let times = 0; times < 30; times++) {
      const refused = await refusal(streamUrl(url), { headers: { 'x-api-key': key } });
      retryAfter.add(readProblem(refused, 'overloaded').retry_after_seconds);
    }
    assert.ok(retryAfter.size > 1, 'streams that were refused together do not come back together');
    await open[0]?.end();
    const again = new StreamClient(url, key);
    await once(again.socket, 'open');
    for (const client of [open[1], again]) await client?.end();
  });

  test('the threads are late: 503 while the expected wait is over a second', async () => {
    const real = await sharedClassifier();
    let waitMs = 1_001;
    const classifier = new Proxy(real, {
      get: (target, name) => {
        if (name === 'expectedWaitMs') return () => waitMs;
        const value = Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const late = await testApp({}, { classifier });
    const { url } = await late.listen();
    readProblem(await refusal(streamUrl(url), { headers: { 'x-api-key': late.key } }), 'overloaded');
    waitMs = 1_000;
    await (await StreamClient.open(late)).end();
  });

  test('rate limit reached: a stream counts as one request', async () => {
    const small = await testApp({ SERVICE_RATE_LIMIT: '1' });
    const { url } = await small.listen();
    const client = await StreamClient.open(small, PHONE);
    await client.send(...cut(encode(angry, 'mulaw'), [800])).end();
    assert.equal(client.predictions.length, 3);
    readProblem(await refusal(streamUrl(url), { headers: { 'x-api-key': small.key } }), 'rate_limited');
  });
});

describe('keys', () => {
  test('a browser offers its key as a subprotocol; the server selects the other one', async () => {
    const { url } = await service.listen();
    const socket = new WebSocket(streamUrl(url), ['undertone.v1', `apikey.${service.key}`]);
    await once(socket, 'open');
    assert.equal(socket.protocol, 'undertone.v1');
    socket.terminate();
    readProblem(
      await refusal(streamUrl(url), { headers: { 'sec-websocket-protocol': 'apikey.x' } }),
      'invalid_api_key',
    );
  });

  test('revoking a key closes streams that say nothing or almost nothing', async () => {
    const own = await testApp({}, { streamTimes: { recheckMs: 50 } });
    const { key, record } = await own.stores.keys.create('leaving');
    const { url } = await own.listen();
    const silent = new StreamClient(url, key, PHONE);
    const trickling = new StreamClient(url, key, PHONE);
    await Promise.all([once(silent.socket, 'open'), once(trickling.socket, 'open')]);
    await own.stores.keys.revoke(record.id);
    const sending = setInterval(() => trickling.send(Buffer.alloc(1)), 20);
    for (const { closed } of [silent, trickling]) {
      assert.deepEqual(await closed, { code: 1008, reason: 'invalid_api_key' });
    }
    clearInterval(sending);
  });

  test('revoking a key closes its open streams with an error, and no others', async () => {
    const own = await testApp();
    const { key, record } = await own.stores.keys.create('leaving');
    const { url } = await own.listen();
    const leaving = new StreamClient(url, key, PHONE);
    await once(leaving.socket, 'open');
    const staying = await StreamClient.open(own, PHONE);
    const second = encode(angry.subarray(0, 8_000), 'mulaw');
    for (let i = 0; i < 5; i++) leaving.send(second);
    await leaving.received(2);
    await own.stores.keys.revoke(record.id);
    // Key lookups are cached for a second.
    const sending = setInterval(() => leaving.send(second), 20);
    assert.deepEqual(await leaving.closed, { code: 1008, reason: 'invalid_api_key' });
    clearInterval(sending);
    assert.equal(leaving.messages.at(-1)?.code, 'invalid_api_key');
    await staying.send(encode(angry, 'mulaw')).end();
    assert.equal(staying.predictions.length, 3);
  });
});

describe('fault injection', () => {
  test('any text but {"type": "end"} closes the stream with an error', async () => {
    for (const text of ['hello', '{"type":"start"}', 'null', `"${'x'.repeat(5_000)}"`]) {
      const client = await StreamClient.open(service);
      assert.deepEqual(await client.say(text).closed, { code: 1007, reason: 'bad_request' });
      assert.ok(Value.Check(schemas.StreamError, client.messages.at(-1)));
    }
  });

  test('NaN samples close the stream with unreadable_audio', async () => {
    const client = await StreamClient.open(service, { sample_rate: 8_000, encoding: 'pcm_f32le' });
    const nan = Buffer.alloc(5 * 8_000 * 4, Buffer.from(Float32Array.of(Number.NaN).buffer));
    assert.equal((await client.send(nan).closed).code, 1007);
    assert.equal(client.messages.at(-1)?.code, 'unreadable_audio');
  });

  test('a message of 1 MiB is accepted; one over the limit closes the stream', async () => {
    const client = await StreamClient.open(service, { interval: 10 });
    client.send(Buffer.alloc(2 ** 20));
    await client.end();
    assert.equal(client.messages.at(-1)?.duration_seconds, Number((2 ** 19 / 44_100).toFixed(3)));
    const greedy = await StreamClient.open(service);
    assert.equal((await greedy.send(Buffer.alloc(STREAM_LIMITS.maxMessageBytes + 1)).closed).code, 1009);
  });

  test('an idle stream is closed with 4408, whether or not it sent audio before', async () => {
    const quick = await testApp({}, { streamTimes: { idleMs: 100 } });
    for (const before of [Buffer.alloc(0), Buffer.alloc(1_000)]) {
      const client = await StreamClient.open(quick);
      assert.deepEqual(await client.send(before).closed, { code: 4408, reason: 'request_timeout' });
      assert.equal(client.messages.at(-1)?.type, 'error');
    }
  });

  test('a client that does not complete the close is disconnected', async () => {
    const quick = await testApp({}, { streamTimes: { idleMs: 50, closeMs: 50 } });
    const client = await StreamClient.open(quick);
    client.socket.pause();
    await allClosed(quick);
    client.socket.resume();
    assert.equal((await client.closed).code, 4408);
  });

  test('a window over the maximum latency closes the stream with overloaded', async () => {
    const slow = await testApp({}, { streamTimes: { lagMs: 0 } });
    const client = await StreamClient.open(slow, PHONE);
    client.send(encode(angry, 'mulaw'));
    assert.deepEqual(await client.closed, { code: 1013, reason: 'overloaded' });
    assert.equal(client.messages.at(-1)?.code, 'overloaded');
  });

  test('backpressure slows down a fast client, and every window is answered', async () => {
    const client = await StreamClient.open(service, { sample_rate: 48_000, encoding: 'pcm_f32le' });
    // More than all buffers between client and server can hold.
    client.send(...cut(Buffer.alloc(60 * 48_000 * 4), [9_600]));
    await client.received(2);
    assert.ok(client.socket.bufferedAmount > 0, 'the client saw no backpressure');
    await client.end();
    assert.equal(client.predictions.length, 12);
  });

  test('clients that disconnect at any moment leave no open streams', async () => {
    const { url } = await service.listen();
    const piece = encode(angry.subarray(0, 40_000), 'mulaw');
    for (let round = 0; round < 20; round++) {
      const clients = Array.from({ length: 10 }, () => new StreamClient(url, service.key, PHONE));
      await Promise.all(
        clients.map(async (client, i) => {
          await once(client.socket, 'open');
          if (i % 3 === 0) client.send(piece);
          client.socket.terminate();
        }),
      );
    }
    await allClosed(service);
    const client = await StreamClient.open(service, PHONE);
    await client.send(piece).end();
    assert.equal(client.predictions.length, 1);
  });

  test('invalid frames and silent sockets are closed without disturbing another stream', async () => {
    const quick = await testApp({}, { streamTimes: { idleMs: 2_000, closeMs: 100 } });
    const healthy = await StreamClient.open(quick, PHONE);
    const second = encode(angry.subarray(0, 8_000), 'mulaw');
    const talking = setInterval(() => healthy.send(second), 100);
    const { port } = await quick.listen();
    const silent = await rawUpgrade(port, quick.key);
    const closed = once(silent, 'close');
    for (const bytes of ['\xf7\x05hello', '\x82\x05hello', '\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff']) {
      const socket = await rawUpgrade(port, quick.key);
      socket.write(Buffer.from(bytes, 'latin1'));
      await once(socket, 'close');
    }
    await closed;
    await healthy.received(3);
    clearInterval(talking);
    assert.equal((await healthy.end()).code, 1000);
  });

  test('an upgrade to HTTP/2 is ignored, and the request is answered', async () => {
    const { url } = await service.listen();
    const headers = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABk' };
    const { request } = await import('node:http');
    const [response] = await once(request(url + PATHS.health, { headers }).end(), 'response');
    assert.equal(response.statusCode, 200);
    response.resume();
  });
});

describe('memory', () => {
  const MIB = 1024 * 1024;

  test('unfinished messages of one owner are bounded, and leave room for others', async () => {
    const own = await testApp({}, { heldBytes: 4 * MIB });
    const { url } = await own.listen();
    const { key } = await own.stores.keys.create('another');
    const begun = await Promise.all([StreamClient.open(own, PHONE), StreamClient.open(own, PHONE)]);
    for (const { socket } of begun) socket.send(Buffer.alloc(1.5 * MIB), { fin: false });
    assert.deepEqual(await Promise.race(begun.map(({ closed }) => closed)), {
      code: 1013,
      reason: 'overloaded',
    });
    const other = new StreamClient(url, key, PHONE);
    await other.received(1);
    other.send(Buffer.alloc(MIB));
    assert.deepEqual(await other.end(), { code: 1000, reason: '' });
    for (const { socket } of begun) socket.terminate();
    while (own.services.streams.held.byOwner().size > 0) await sleep(10);
  });

  test('messages that were consumed do not count, however many there are', async () => {
    const own = await testApp({}, { heldBytes: 600_000 });
    const client = await StreamClient.open(own, { sample_rate: 48_000 });
    for (let i = 0; i < 40; i++) client.send(Buffer.alloc(48_000));
    assert.deepEqual(await client.end(), { code: 1000, reason: '' });
  });
});

describe('operations', () => {
  test('shutdown closes every stream with 1012 and refuses new ones', async () => {
    const stopping = await testApp();
    const client = await StreamClient.open(stopping, PHONE);
    await client.received(1);
    await stopping.app.close();
    assert.deepEqual(await client.closed, { code: 1012, reason: 'going_away' });
    assert.ok(Value.Check(schemas.StreamError, client.messages.at(-1)));
    const caller = { id: 'anybody', owner: 'anybody', limits: defaultLimits(stopping.services.settings) };
    assert.throws(() => stopping.services.streams.reserveSlot(caller), /stopping/);
  });

  test('shutdown waits for the last answer of a stream that has sent its end', async (t) => {
    const stopping = await testApp();
    const { classifier, streams, settings } = stopping.services;
    const classify = classifier.classifySamples.bind(classifier);
    const asked = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    t.mock.method(classifier, 'classifySamples', async (...args: Parameters<typeof classify>) => {
      asked.resolve();
      await released.promise;
      return classify(...args);
    });
    const client = await StreamClient.open(stopping, PHONE);
    client.send(encode(angry.slice(0, 24_000), 'mulaw')).say({ type: 'end' });
    await asked.promise;
    const closed = stopping.app.close();
    const caller = { id: 'anybody', owner: 'anybody', limits: defaultLimits(settings) };
    const refuses = () => {
      try {
        streams.reserveSlot(caller)();
        return false;
      } catch {
        return true;
      }
    };
    while (!refuses()) await sleep(1);
    released.resolve();
    await closed;
    assert.deepEqual(await client.closed, { code: 1000, reason: '' });
    assert.equal(client.predictions.length, 1);
  });

  test('a stream is one log line, without its query, key or predictions', async () => {
    const lines: string[] = [];
    const logger = createLogger('debug', { write: (line) => lines.push(line) });
    const logged = await testApp({}, { logger });
    const client = await StreamClient.open(logged, { ...PHONE, note: 'private-note' });
    await client.send(encode(angry, 'mulaw')).end();
    await allClosed(logged);
    const about = lines.map((line) => JSON.parse(line)).filter(({ route }) => route === PATHS.stream);
    assert.deepEqual(
      about.map(({ status, msg }) => [status, msg]),
      [[101, 'the stream is closed']],
    );
    assert.doesNotMatch(lines.join(''), new RegExp(`private|mulaw|emotion|${logged.key}`));
  });

  test('metrics show open streams, latency and seconds of audio', async () => {
    const measured = await testApp();
    const client = await StreamClient.open(measured, PHONE);
    assert.equal(await streamsOpen(measured), 1);
    await client.send(encode(angry, 'mulaw')).end();
    await allClosed(measured);
    const { body } = await measured.app.inject({ url: PATHS.metrics });
    assert.match(body, /undertone_stream_lag_seconds_count 3/);
    assert.match(body, /undertone_audio_seconds_total\{interface="stream"\} 11/);
    assert.match(body, /undertone_requests_total\{method="GET",route="\/v1\/stream",status="101"\} 1/);
  });
});

/** A raw connection after the upgrade, to send invalid frames on. */
async function rawUpgrade(port: number, key: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  const headers = ['host: x', `x-api-key: ${key}`, 'connection: Upgrade', 'upgrade: websocket'];
  headers.push('sec-websocket-version: 13', 'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==');
  socket.write([`GET ${PATHS.stream} HTTP/1.1`, ...headers, '', ''].join('\r\n'));
  await once(socket, 'data');
  return socket.resume();
}

/** The server notices a close slightly later than the client. */
async function waitUntil(happened: () => Promise<boolean>): Promise<void> {
  while (!(await happened())) await sleep(10);
}

const allClosed = (of: typeof service) => waitUntil(async () => (await streamsOpen(of)) === 0);

async function streamsOpen({ app }: typeof service): Promise<number> {
  const { body } = await app.inject({ url: PATHS.metrics });
  return Number(/undertone_streams_open (\d+)/.exec(body)?.[1]);
}
