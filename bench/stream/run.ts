// Live audio: latency from the last sample of a window to its answer, memory per stream, and hostile streams. See ../README.md.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { startServerProcess } from '@undertone/testing/server-process';
import { WebSocket } from 'ws';
import { checkHealth, watchHealth } from '../support/health.ts';
import { describeMachine, Limits, median, percentile, rounded } from '../support/report.ts';
import { streamVoices } from './voices.ts';

const LIMITS = {
  /** For one speaker, on 2 idle cores. */
  aloneMs: 300,
  crowdP99Ms: 1_000,
  megabytesPerStream: 2,
  silentMegabytes: 150,
  /** Heap and allocator noise in the second half; more than this is a leak. */
  growthMegabytes: 60,
};
const SILENT = 1_000;

const { values } = parseArgs({
  options: {
    /** Numbers of concurrent speakers. */
    people: { type: 'string', default: '1,10,50' },
    /** Sample rates of the recorded voices. */
    rates: { type: 'string', default: '8000,16000,44100,48000' },
    /** Duration of each speaker's stream. */
    seconds: { type: 'string', default: '60' },
    rate: { type: 'string', default: '16000' },
    /** Number of hostile connections. */
    connects: { type: 'string', default: '5000' },
  },
});

interface Talk {
  readonly lagsMs: readonly number[];
  readonly failures: readonly string[];
}

const HOSTILE: (() => Promise<void>)[] = [
  () => say((socket) => socket.terminate()),
  () =>
    say(
      (socket) => socket.send(Buffer.alloc(7)),
      (socket) => socket.terminate(),
    ),
  () =>
    say(
      (socket) => socket.send(Buffer.alloc(2 ** 20)),
      (socket) => socket.terminate(),
    ),
  () => say((socket) => socket.send(Buffer.alloc(5 * 2 ** 20))),
  () => say((socket) => socket.send('{"type":')),
  () => say((socket) => socket.send('{"type":"end"}')),
  // An invalid frame: reserved bits, no mask.
  () => raw('\xf7\x05hello'),
  // Nothing after the upgrade, and no close frame.
  () => raw(''),
];

const limits = new Limits();
console.log(`${describeMachine()}\n`);
const server = await startServerProcess({
  SERVICE_STREAM_LIMIT: '0',
  SERVICE_STREAM_TOTAL_LIMIT: '0',
  SERVICE_RATE_LIMIT: '0',
});
try {
  await recordedVoices();
  await conversations(values.people.split(',').map(Number));
  await silence();
  await hostility(Number(values.connects));
} finally {
  await server.stop();
}
limits.conclude();

/** Ten recorded voices in real time, at every rate: the same emotion as the discrete interface, with low latency. */
async function recordedVoices(): Promise<void> {
  for (const rate of values.rates.split(',').map(Number)) {
    const heard = await streamVoices(server, rate);
    for (const { name, live, discrete } of heard) {
      if (live !== discrete) limits.miss(`${name} at ${rate} Hz: ${live} live, ${discrete} as a file`);
    }
    const slowest = Math.max(...heard.map(({ lagMs }) => lagMs));
    const same = heard.filter(({ live, discrete }) => live === discrete).length;
    console.log(
      `${rate} Hz: ${same} of ${heard.length} voices as in the discrete interface, at most ${rounded(slowest)} ms late.`,
    );
    limits.atMost(`answers to recorded voices at ${rate} Hz`, slowest, LIMITS.aloneMs, ' ms');
  }
}

async function conversations(numbers: readonly number[]): Promise<void> {
  const rows = [];
  await talk(1, 10); // warm-up
  for (const people of numbers) {
    await server.peakMegabytes();
    const before = await server.residentMegabytes();
    const health = watchHealth(server.url);
    const { lagsMs, failures } = await talk(people, Number(values.seconds));
    const seen = await health.stop();
    const perStream = ((await server.peakMegabytes()) - before) / people;
    const [p50, p99] = [median(lagsMs), percentile(lagsMs, 0.99)];
    rows.push({
      people,
      answers: lagsMs.length,
      'p50 ms': rounded(p50),
      'p99 ms': rounded(p99),
      'slowest ms': rounded(Math.max(...lagsMs)),
      'MB each': rounded(Math.max(0, perStream)),
      failures: failures.length,
    });
    const who = `${people} concurrent speakers`;
    for (const failure of failures) limits.miss(`${who}: ${failure}`);
    limits.atMost(`p99 with ${who}`, p99, people === 1 ? LIMITS.aloneMs : LIMITS.crowdP99Ms, ' ms');
    if (people >= 50)
      limits.atMost(`memory of each stream, ${who}`, perStream, LIMITS.megabytesPerStream, ' MB');
    checkHealth(limits, `with ${who}`, seen);
  }
  console.table(rows);
}

/** Silent connections, within the 30 s before they time out. */
async function silence(): Promise<void> {
  const before = await server.residentMegabytes();
  const child = spawnTalk(['--people', String(SILENT), '--silent']);
  await once(child.stdout as NodeJS.ReadableStream, 'data');
  const open = await server.metric('undertone_streams_open');
  const megabytes = (await server.residentMegabytes()) - before;
  child.stdin?.end();
  await once(child, 'exit');
  console.log(`${open} silent connections: ${rounded(megabytes)} MB (limit ${LIMITS.silentMegabytes}).`);
  if (open !== SILENT) limits.miss(`${SILENT} silent connections: ${open} were open`);
  limits.atMost(`memory of ${SILENT} silent connections`, megabytes, LIMITS.silentMegabytes, ' MB');
}

/** Odd bytes, megabyte frames, text, half-open sockets and disconnects, while one speaker talks. */
async function hostility(connects: number): Promise<void> {
  const talking = talk(1, Math.max(20, connects / 100));
  let middle = 0;
  let turn = 0;
  const begun = performance.now();
  const work = async () => {
    while (turn < connects) {
      if (turn === Math.floor(connects / 2)) middle = await server.residentMegabytes();
      await HOSTILE[turn++ % HOSTILE.length]?.();
    }
  };
  await Promise.all(Array.from({ length: 16 }, work));
  const seconds = (performance.now() - begun) / 1_000;
  const { lagsMs, failures } = await talking;
  for (let i = 0; i < 100 && (await server.metric('undertone_streams_open')) > 0; i++) await sleep(100);
  const open = await server.metric('undertone_streams_open');
  const grown = (await server.residentMegabytes()) - middle;
  console.log(
    `${connects} hostile connections in ${rounded(seconds)} s: ${open} streams left open, ${rounded(grown)} MB more than at ` +
      `half time; median latency of a concurrent speaker ${rounded(median(lagsMs))} ms.`,
  );
  if (open !== 0) limits.miss(`${open} streams are left open`);
  if (!server.isAlive) limits.miss('the server exited');
  for (const failure of failures) limits.miss(`a concurrent speaker: ${failure}`);
  limits.atLeast('answers to a concurrent speaker', lagsMs.length, 1);
  limits.atMost('memory gained in the second half', grown, LIMITS.growthMegabytes, ' MB');
}

/** Connects, runs the actions, and waits until the socket is closed. */
async function say(...things: ((socket: WebSocket) => void)[]): Promise<void> {
  const socket = new WebSocket(streamUrl(), { headers: { 'x-api-key': server.key } });
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => undefined);
  socket.once('open', () => {
    for (const thing of things) thing(socket);
  });
  await closed;
}

async function raw(bytes: string): Promise<void> {
  const { hostname, port, pathname } = new URL(streamUrl());
  const socket = connectTcp(Number(port), hostname);
  socket.on('error', () => undefined);
  socket.write(
    [`GET ${pathname} HTTP/1.1`, `host: ${hostname}`, `x-api-key: ${server.key}`, 'connection: Upgrade']
      .concat(
        'upgrade: websocket',
        'sec-websocket-version: 13',
        'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==',
        '',
        '',
      )
      .join('\r\n'),
  );
  await Promise.race([once(socket, 'data'), once(socket, 'close')]);
  socket.write(Buffer.from(bytes, 'latin1'));
  await sleep(1);
  socket.destroy();
}

function streamUrl(): string {
  return `${server.url.replace(/^http/, 'ws')}/v1/stream`;
}

async function talk(people: number, seconds: number): Promise<Talk> {
  const args = ['--people', String(people), '--seconds', String(seconds), '--rate', values.rate];
  const { stdout } = await promisify(execFile)(process.execPath, talkArgs(args));
  return JSON.parse(stdout) as Talk;
}

function spawnTalk(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, talkArgs(args), { stdio: ['pipe', 'pipe', 'inherit'] });
}

/** Speakers run in a separate process. */
function talkArgs(args: readonly string[]): string[] {
  const program = fileURLToPath(new URL('./talk.ts', import.meta.url));
  return [program, '--url', server.url, '--key', server.key, ...args];
}
