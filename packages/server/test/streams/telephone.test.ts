import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { shippedClassifier, testApp } from '@undertone/testing/app';
import { cut, encode, voiceAt } from '@undertone/testing/stream-audio';
import { WebSocket } from 'ws';

const EXAMPLE = fileURLToPath(new URL('../../../../examples/telephone/server.ts', import.meta.url));
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
      cut(encode(await voiceAt(voice, 8_000, 7), 'mulaw'), [FRAME_BYTES]).map((frame) => ({
        event: 'media',
        media: { track, payload: frame.toString('base64') },
      })),
    ),
  );
  for (let i = 0; i < 7 * 50; i++) for (const side of frames) yield side[i];
  yield { event: 'stop', streamSid: 'MZ1' };
}

test('the telephone example analyses both sides of a call separately', async (t) => {
  const service = await testApp({}, { classifier: await shippedClassifier() });
  const { url } = await service.listen();
  const env = { ...process.env, SERVICE_API_KEY: service.key, SERVICE_URL: url, PORT: '0' };
  const example = spawn(process.execPath, [EXAMPLE], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => example.kill());
  const lines = createInterface(example.stdout)[Symbol.asyncIterator]();
  const [port] = /\d+/.exec((await lines.next()).value ?? '') ?? [];
  const socket = new WebSocket(`ws://127.0.0.1:${port}`);
  await once(socket, 'open');
  for await (const frame of recordedCall()) socket.send(JSON.stringify(frame));

  const byTrack = new Map<string, object[]>();
  for (let i = 0; i < 4; i++) {
    const { call, track, t, main_emotion } = JSON.parse((await lines.next()).value ?? '');
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
});
