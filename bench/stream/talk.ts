// A process of speakers, started by run.ts. Each starts at a random moment, sends 20 ms frames in real time, and measures the time
// from a window's last sample to its answer. Prints the results as JSON.
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { encode } from '@undertone/testing/stream-audio';
import { WebSocket } from 'ws';
import { voiceLike } from '../support/voice.ts';

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: '' },
    key: { type: 'string', default: '' },
    people: { type: 'string', default: '1' },
    /** Duration of each stream. */
    seconds: { type: 'string', default: '30' },
    rate: { type: 'string', default: '16000' },
    /** Connect, but send nothing. */
    silent: { type: 'boolean', default: false },
  },
});
const FRAME_MS = 20;
const WINDOW_SECONDS = 5;
const rate = Number(values.rate);
const seconds = Number(values.seconds);
const bytesPerFrame = (2 * rate * FRAME_MS) / 1_000;
const voice = encode(voiceLike(WINDOW_SECONDS, rate));
const url = `${values.url.replace(/^http/, 'ws')}/v1/stream?sample_rate=${rate}`;
const lagsMs: number[] = [];
const failures: string[] = [];

async function connect(): Promise<WebSocket> {
  const socket = new WebSocket(url, { headers: { 'x-api-key': values.key }, perMessageDeflate: false });
  await Promise.race([once(socket, 'open'), once(socket, 'error').then(([error]) => Promise.reject(error))]);
  return socket;
}

async function talk(): Promise<void> {
  // Otherwise all windows would complete at the same moment.
  await sleep(Math.random() * WINDOW_SECONDS * 1_000);
  const socket = await connect();
  const begun = performance.now();
  socket.on('message', (data) => {
    const message = JSON.parse(String(data));
    if (message.type === 'error') failures.push(message.code);
    // The frame that completes a window is sent at the window's end.
    if (message.type === 'prediction') lagsMs.push(performance.now() - begun - 1_000 * message.end);
  });
  for (let frame = 1; frame * FRAME_MS <= seconds * 1_000 && socket.readyState === WebSocket.OPEN; frame++) {
    await sleep(begun + frame * FRAME_MS - performance.now());
    const at = ((frame - 1) * bytesPerFrame) % voice.length;
    socket.send(voice.subarray(at, at + bytesPerFrame));
  }
  if (socket.readyState !== WebSocket.OPEN) return;
  const closed = once(socket, 'close');
  socket.send(JSON.stringify({ type: 'end' }));
  await closed;
}

async function stayIdle(): Promise<void> {
  const sockets = await Promise.all(Array.from({ length: Number(values.people) }, connect));
  process.stdout.write('"connected"\n');
  // run.ts closes stdin after measuring.
  await once(process.stdin.resume(), 'end');
  for (const socket of sockets) socket.terminate();
}

if (values.silent) await stayIdle();
else {
  const talking = Array.from({ length: Number(values.people) }, () =>
    talk().catch((error: Error) => failures.push(error.message)),
  );
  await Promise.all(talking);
  console.log(JSON.stringify({ lagsMs, failures }));
}
