import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { tempDir, testApp } from '@undertone/testing/app';
import { TEST_MODELS } from '@undertone/testing/paths';
import { ServerProcess } from '@undertone/testing/server-process';
import { encode, voiceAt } from '@undertone/testing/stream-audio';
import { ConfigError, EmotionClient, RequestFailedError, type StreamPrediction } from '../src/index.ts';

const KEY = 'a-key-for-streams';
const start = () => testApp({ SERVICE_API_KEY: KEY });
const service = await start();
const { url: baseUrl } = await service.listen();
const client = new EmotionClient({ apiKey: KEY, baseUrl, logLevel: 'silent' });
const voice = encode(await voiceAt('angry-1013.wav', 8_000, 12), 'mulaw');
const PHONE = { sampleRate: 8_000, encoding: 'mulaw' } as const;

async function collect(stream: AsyncIterable<StreamPrediction>): Promise<StreamPrediction[]> {
  const predictions: StreamPrediction[] = [];
  for await (const prediction of stream) predictions.push(prediction);
  return predictions;
}

test('write samples and read predictions until the end', async () => {
  const stream = client.stream({ ...PHONE, interval: 5, model: '7emotions' });
  const heard = collect(stream);
  for (let at = 0; at < voice.length; at += 800) await stream.write(voice.subarray(at, at + 800));
  await stream.end();
  const predictions = await heard;
  assert.deepEqual(
    predictions.map(({ t, start, end, channel }) => [t, start, end, channel]),
    [
      ['00:00', 0, 5, 0],
      ['00:05', 5, 10, 0],
      ['00:07', 7, 12, 0],
    ],
  );
  assert.equal(Object.keys(predictions[0]?.all_predictions ?? {}).length, 7);
});

test('a stream of bytes can be piped into it', async () => {
  const stream = client.stream(PHONE);
  const heard = collect(stream);
  await new Blob([new Uint8Array(voice)]).stream().pipeTo(stream.writable);
  assert.equal((await heard).length, 3);
});

test('feed writes a source to its end, and errors of the source reach the reader', async () => {
  async function* source(broken: boolean) {
    for (let at = 0; at < voice.length; at += 4_001) yield voice.subarray(at, at + 4_001);
    if (broken) throw new Error('unplugged');
  }
  assert.equal((await collect(client.stream(PHONE).feed(source(false)))).length, 3);
  await assert.rejects(collect(client.stream(PHONE).feed(source(true))), /unplugged/);
  const broken = new ReadableStream({ pull: (controller) => controller.error(new Error('no permission')) });
  await assert.rejects(collect(client.stream(PHONE).feed(broken)), /no permission/);
});

test('leaving the loop closes the connection', async () => {
  const stream = client.stream(PHONE);
  await stream.write(voice);
  for await (const { main_emotion } of stream) {
    assert.ok(main_emotion);
    break;
  }
  await assert.rejects(stream.write(voice), RequestFailedError);
});

test('a server restart: the stream reconnects after a random moment, logs it and continues', async (t) => {
  const first = await start();
  const address = new URL((await first.listen()).url);
  const warnings: string[] = [];
  const { warn } = console;
  console.warn = (line: string) => warnings.push(line);
  let reconnected = 0;
  const loud = new EmotionClient({ apiKey: KEY, baseUrl: address.href, logLevel: 'warn' });
  const stream = loud.stream({ ...PHONE, onReconnect: () => reconnected++ });
  const predictions = stream[Symbol.asyncIterator]();
  await stream.write(voice.subarray(0, 6 * 8_000));
  assert.deepEqual((await predictions.next()).value?.end, 5);
  await first.app.close();
  const second = await start();
  await second.app.listen({ host: address.hostname, port: Number(address.port) });
  t.mock.method(Math, 'random', () => 0.9);
  const begun = performance.now();
  await stream.write(voice.subarray(0, 5 * 8_000));
  assert.ok(performance.now() - begun > 440, 'streams that were lost together do not reconnect together');
  const { value } = await predictions.next();
  assert.deepEqual([value?.t, value?.start, value?.end], ['00:06', 6, 11]);
  assert.equal(reconnected, 1);
  console.warn = warn;
  assert.match(warnings.join('\n'), /stopping[\s\S]*reconnected/);
  stream.close();
});

test('a server killed in mid-stream: the stream reconnects and stays aligned to samples', async (t) => {
  const server = new ServerProcess(await tempDir(), { SERVICE_MODELS_DIR: TEST_MODELS });
  t.after(() => server.end('SIGTERM'));
  await server.start();
  const warnings: string[] = [];
  const { warn } = console;
  console.warn = (line: string) => warnings.push(line);
  t.after(() => {
    console.warn = warn;
  });
  const { key: apiKey, url } = server;
  const stream = new EmotionClient({ apiKey, baseUrl: url, logLevel: 'warn', retryAttempts: 20 }).stream({
    sampleRate: 8_000,
  });
  const long = encode(await voiceAt('angry-1013.wav', 8_000, 20));
  // In the middle of a sample.
  const half = 2 * 8_000 * 6 + 1;
  const predictions = stream[Symbol.asyncIterator]();
  await stream.write(long.subarray(0, half));
  assert.equal((await predictions.next()).value?.end, 5);
  await server.end('SIGKILL');
  let after: StreamPrediction | undefined;
  const heard = predictions.next().then(({ value }) => {
    after = value;
  });
  const starting = server.start();
  // Keeps writing like a microphone: samples sent before the lost connection is noticed are lost.
  for (let at = half; after === undefined; at = at + 801 < long.length ? at + 801 : 0) {
    await stream.write(long.subarray(at, at + 801));
    await sleep(1);
  }
  await Promise.all([starting, heard]);
  assert.ok(after && after.start >= 6 && Math.abs(after.end - after.start - 5) < 1e-6);
  assert.ok(after.speech_seconds > 1, 'the sample that was cut in half shifted the others');
  assert.match(warnings.join('\n'), /was lost[\s\S]*Retry 1[\s\S]*reconnected/);
  stream.close();
});

test('a wrong key is an error with its code, for writer and reader', async () => {
  const stream = new EmotionClient({ apiKey: 'wrong', baseUrl, logLevel: 'silent' }).stream();
  const refused = (error: RequestFailedError) => error.code === 'invalid_api_key' && error.status === 401;
  await assert.rejects(stream.write(voice), refused);
  await assert.rejects(collect(stream), refused);
});

test('invalid options throw before anything is sent, with all of their names', () => {
  assert.throws(
    () => client.stream({ sampleRate: 7, channels: 3, interval: 11, encoding: 'mp3' as never }),
    (error: ConfigError) => error instanceof ConfigError && error.problems.length === 4,
  );
  assert.throws(() => client.stream({ rate: 8_000 } as never), ConfigError);
});

test('an abort ends the stream with its reason', async () => {
  const stop = new AbortController();
  const stream = client.stream({ ...PHONE, signal: stop.signal });
  await stream.write(voice.subarray(0, 100));
  stop.abort(new Error('enough'));
  await assert.rejects(collect(stream), /enough/);
});
