import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { shippedClassifier, tempDir, testApp } from '@undertone/testing/app';
import { blocksOf, readDocument } from '@undertone/testing/documents';
import { ROOT } from '@undertone/testing/paths';
import { cut, encode, voiceAt } from '@undertone/testing/stream-audio';
import { WebSocket } from 'ws';

const README = 'examples/telephone/README.md';
const service = await testApp({ SERVICE_WEBHOOK_PRIVATE: 'true' }, { classifier: await shippedClassifier() });
const { url } = await service.listen();
service.services.worker.start();
service.services.webhooks.start();
const results = await tempDir();

/** 20 ms of mu-law at 8 kHz. */
const FRAME_BYTES = 160;

/** The messages of a telephone service for a call: base64 frames, alternating between the two sides. */
async function* recordedCall() {
  yield { event: 'connected', protocol: 'Call', version: '1.0.0' };
  const mediaFormat = { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 };
  yield {
    event: 'start',
    streamSid: 'MZ1',
    start: { callSid: 'CA1', tracks: ['inbound', 'outbound'], mediaFormat },
  };
  const sides = { inbound: 'angry-1013.wav', outbound: 'sad-1028.wav' };
  const frames = await Promise.all(
    Object.entries(sides).map(async ([track, voice]) =>
      cut(encode(await voiceAt(voice, 8_000, 7), 'mulaw'), [FRAME_BYTES]).map((frame, i) => ({
        event: 'media',
        media: { track, timestamp: String(20 * i), payload: frame.toString('base64') },
      })),
    ),
  );
  for (let i = 0; i < 7 * 50; i++) for (const side of frames) yield side[i];
  yield { event: 'stop', streamSid: 'MZ1' };
}

/** Starts the example with the command of its README. */
function startExample() {
  const command =
    blocksOf(README)
      .find(({ mark }) => mark === 'by-hand')
      ?.text.split('\n')
      .at(-1) ?? '';
  const ours = command.replace(/^PORT=\d+/, 'PORT=0');
  assert.match(ours, /^PORT=0 npx node \S+$/);
  const shell = spawn('sh', ['-c', ours], {
    cwd: ROOT,
    env: { ...process.env, SERVICE_API_KEY: service.key, SERVICE_URL: url, RESULTS: results },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  const lines = createInterface(shell.stdout)[Symbol.asyncIterator]();
  return {
    nextLine: async () => String((await lines.next()).value),
    // npx does not pass signals on, so the whole group gets it.
    stop: () => process.kill(-Number(shell.pid)),
  };
}

test('the telephone example analyses both sides of a call live, and stores the whole call after a webhook', async (t) => {
  const example = startExample();
  t.after(example.stop);
  const [port] = /\d+/.exec(await example.nextLine()) ?? [];
  const socket = new WebSocket(`ws://127.0.0.1:${port}`);
  await once(socket, 'open');
  for await (const frame of recordedCall()) socket.send(JSON.stringify(frame));

  const byTrack = new Map<string, object[]>();
  for (let i = 0; i < 4; i++) {
    const { call, track, t, main_emotion } = JSON.parse(await example.nextLine());
    byTrack.set(track, [...(byTrack.get(track) ?? []), { call, t, main_emotion }]);
  }
  assert.deepEqual(Object.fromEntries(byTrack), {
    inbound: [
      { call: 'CA1', t: '00:00', main_emotion: 'angry' },
      { call: 'CA1', t: '00:02', main_emotion: 'angry' },
    ],
    outbound: [
      { call: 'CA1', t: '00:00', main_emotion: 'sad' },
      { call: 'CA1', t: '00:02', main_emotion: 'sad' },
    ],
  });

  const file = join(results, 'CA1.json');
  assert.deepEqual(JSON.parse(await example.nextLine()), { call: 'CA1', status: 'completed', file });
  const { emotions, duration_seconds } = JSON.parse(await readFile(file, 'utf8'));
  assert.equal(duration_seconds, 7);
  const [caller, other] = emotions.map(({ channel, emotion }: Record<string, unknown>) => [channel, emotion]);
  assert.deepEqual(
    [caller, other],
    [
      [0, 'angry'],
      [1, 'sad'],
    ],
  );
});

test('the telephone example takes webhooks of its own server only', async (t) => {
  const example = startExample();
  t.after(example.stop);
  const [port] = /\d+/.exec(await example.nextLine()) ?? [];
  const body = JSON.stringify({ type: 'request.completed', data: { request_id: 'x', status: 'completed' } });
  const { status } = await fetch(`http://127.0.0.1:${port}/webhook`, { method: 'POST', body });
  assert.equal(status, 500);
});

test('its TwiML copies both sides of the call and then dials', () => {
  const [, twiml = ''] = /( {4}<Response>[\s\S]*<\/Response>)/.exec(readDocument(README)) ?? [];
  assert.match(
    twiml.replaceAll(/\n\s*/g, '').trim(),
    /^<Response><Start><Stream url="wss:[^"]+" track="both_tracks"\/><\/Start><Dial>.*<\/Response>$/,
  );
});
