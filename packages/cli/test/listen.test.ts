import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { talkWav } from '@undertone/testing/talk';
import { writeWav } from '@undertone/testing/wav';
import {
  output,
  type Serving,
  serve,
  start,
  undertone,
  undertoneProcess,
  VOICES,
} from './support/undertone.ts';

const KEY = 'a-key-for-the-listen-tests';
const TERMINAL = `data:text/javascript,${encodeURIComponent('Object.assign(process.stderr, { isTTY: true, columns: 90 })')}`;
const ROW = /^ *(\d\d:\d\d) {2}(\w+) +\d+\.\d %/;

let folder: string;
let server: Serving;
let env: Record<string, string>;
const talk = talkWav(12);
const RAW = ['--rate', '16000', '--encoding', 'pcm_s16le'];

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'undertone-listen-'));
  server = await serve(join(folder, 'data'), [], { SERVICE_API_KEY: KEY });
  env = { SERVICE_API_KEY: KEY, SERVICE_URL: server.url };
});
after(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

test('a file is sent at the speed of speech, with a status line on a terminal', async () => {
  const file = join(VOICES, 'angry-1013.wav');
  const begun = performance.now();
  const { code, stdout, stderr } = await undertoneProcess(['listen', file], {
    env,
    nodeArgs: ['--import', TERMINAL],
  });
  assert.equal(code, 0, stderr);
  assert.ok(performance.now() - begun > 5_000);
  assert.deepEqual(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => ROW.exec(line)?.slice(1)),
    [['00:00', 'angry']],
  );
  assert.match(stderr, /00:02 {2}listening/);
  assert.match(stderr, /00:05 {2}A/);
});

test('standard input gives the same result as WAV from a recorder and as raw samples', async () => {
  // A recorder that writes to a pipe does not know the final length.
  const open = Buffer.from(talk);
  open.writeUInt32LE(0xffff_ffff, 40);
  const recorded = await undertone(['listen', '-', '--json'], { env, input: open });
  const raw = await undertone(['listen', '--json', ...RAW], { env, input: talk.subarray(44) });
  assert.deepEqual([recorded.code, raw.code], [0, 0], recorded.stderr + raw.stderr);
  assert.equal(recorded.stdout, raw.stdout);
  const predictions = recorded.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    predictions.map(({ start, end }) => [start, end]),
    [
      [0, 5],
      [5, 10],
      [7, 12],
    ],
  );
});

test('each of two channels has its own rows', async () => {
  const stereo = writeWav(new Float32Array(6 * 8_000), { sampleRate: 8_000, channels: 2 });
  const { stdout, code } = await undertone(['listen', '--interval', '2'], { env, input: stereo });
  assert.equal(code, 0);
  assert.deepEqual(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(' ')[0]),
    ['left', 'right', 'left', 'right'],
  );
});

test('Ctrl-C stops an endless input and prints the final result', async () => {
  const child = start(['listen', '-', ...RAW], { env });
  const printed = output(child.stdout);
  const ended = once(child, 'close');
  child.stdin?.write(talk.subarray(44, 44 + 7 * 32_000));
  await once(child.stdout as NodeJS.ReadableStream, 'data');
  child.kill('SIGINT');
  assert.deepEqual(await ended, [null, 'SIGINT']);
  assert.match(await printed, /00:00 .*\n +00:02 /);
});

test('input that cannot be streamed is rejected with a message that says what to do', async () => {
  const words = join(folder, 'words.txt');
  await writeFile(words, 'these are words, and not samples');
  const wide = join(folder, 'wide.wav');
  await writeFile(wide, writeWav(new Float32Array(16_000), { encoding: 'pcm24' }));
  for (const [file, said] of [
    [words, /not WAV.*--rate/],
    [wide, /ffmpeg/],
    [join(folder, 'missing.wav'), /no such file/],
  ] as const) {
    const { code, stderr } = await undertone(['listen', file], { env });
    assert.equal(code, 1);
    assert.match(stderr, said);
  }
  const { code, stderr } = await undertone(['listen', '--rate', '7'], { env, input: await readFile(words) });
  assert.equal(code, 2);
  assert.match(stderr, /8000 to 192000/);
});
