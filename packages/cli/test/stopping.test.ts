import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { FlakyServer } from '@undertone/testing/flaky-server';
import { freePort } from '@undertone/testing/ready';
import { COMMAND, output, SHIPPED, start, temporaryFolder, undertone, VOICES } from './support/undertone.ts';

const OLD = 'file,request_id\nold.wav,1\n';
const MODELS = JSON.stringify({ version: '1', weights: {}, models: [{ id: '4emotions' }] });

async function setUp(t: TestContext) {
  const server = await FlakyServer.start();
  t.after(() => server.stop());
  const folder = await temporaryFolder(t);
  const calls = join(folder, 'calls');
  await mkdir(calls);
  for (let i = 0; i < 6; i++) await writeFile(join(calls, `${i}.wav`), 'a recording');
  const rows = join(folder, 'rows.csv');
  await writeFile(rows, OLD);
  const env = { SERVICE_API_KEY: server.settings.apiKey, SERVICE_URL: server.origin, XDG_STATE_HOME: folder };
  return { server, folder, calls, rows, env };
}

test('Ctrl-C ends a loop of the shell too', async (t) => {
  const { server, calls, env } = await setUp(t);
  server.faults = () => ({ kind: 'hang' });
  const loop = 'for i in 1 2 3; do echo "run $i"; "$@"; done; echo finished';
  const args = ['-c', loop, 'bash', process.execPath, COMMAND, 'upload', join(calls, '0.wav')];
  const { PATH = '', HOME = '' } = process.env;
  // In a process group of its own, as on a terminal.
  const shell = spawn('bash', args, { detached: true, env: { PATH, HOME, ...env } });
  const ended = once(shell, 'close');
  const waiting = setInterval(() => {
    if (server.seen.length === 0) return;
    clearInterval(waiting);
    process.kill(-(shell.pid ?? 0), 'SIGINT');
  }, 10);
  assert.equal(await output(shell.stdout), 'run 1\n');
  assert.deepEqual(await ended, [null, 'SIGINT'], 'what a shell reports as 130');
});

test('Ctrl-C stops a command that waits for its input', async (t) => {
  const { env } = await setUp(t);
  for (const args of [['classify'], ['classify', '--server'], ['upload']]) {
    const child = start([...args, '-'], { env });
    // More than a pipe holds: when it is written, the command is reading.
    child.stdin?.on('error', () => undefined).write(new Uint8Array(2 ** 20), () => child.kill('SIGINT'));
    const [stderr, ended] = await Promise.all([output(child.stderr), once(child, 'close')]);
    assert.deepEqual([ended, stderr], [[null, 'SIGINT'], 'undertone: Stopped.\n'], args.join(' '));
  }
});

test('a wrong key, no key or no server stops a folder with one sentence, and touches no file', async (t) => {
  const { server, folder, calls, rows, env } = await setUp(t);
  const nowhere = `http://127.0.0.1:${await freePort()}`;
  const cases: [Record<string, string>, RegExp][] = [
    [{ SERVICE_API_KEY: 'a-wrong-key' }, /^undertone: This key is not known here\.\n$/],
    [{ SERVICE_API_KEY: '' }, /^undertone: No API key: set SERVICE_API_KEY\. .*\n$/],
    [{ SERVICE_URL: nowhere }, /^undertone: No server is running at .*\n$/],
  ];
  for (const [variables, says] of cases) {
    for (const args of [['upload'], ['classify', '--server']]) {
      const command = [...args, calls, '--output', rows];
      const { code, stdout, stderr } = await undertone(command, { env: { ...env, ...variables } });
      assert.deepEqual([code, stdout], [1, ''], stderr);
      assert.match(stderr, says);
      assert.equal(await readFile(rows, 'utf8'), OLD);
    }
  }
  assert.deepEqual((await readdir(folder)).sort(), ['calls', 'rows.csv']);
  assert.ok(
    server.seen.every(({ route }) => route === 'models'),
    'no recording was sent',
  );
});

test('unknown weights and an unknown model leave the output alone', async (t) => {
  const { folder, rows } = await setUp(t);
  const { code } = await undertone(['classify', VOICES, '--weights', 'best', '--output', rows]);
  assert.equal(code, 1);
  assert.equal(await readFile(rows, 'utf8'), OLD);
  assert.deepEqual((await readdir(folder)).sort(), ['calls', 'rows.csv']);
});

test('a key that is revoked during a folder stops it once, and says how to continue', async (t) => {
  const { server, calls, rows, env } = await setUp(t);
  const refused = {
    code: 'invalid_api_key',
    status: 401,
    title: 'Wrong key',
    detail: 'This key was revoked.',
  };
  server.faults = ({ route, time }) => {
    if (route === 'models') return { kind: 'answer', status: 200, body: MODELS };
    if (route !== 'initiate' || time < 3) return undefined;
    const headers = { 'content-type': 'application/problem+json' };
    return { kind: 'answer', status: 401, headers, body: JSON.stringify(refused) };
  };
  const { code, stderr } = await undertone(['upload', calls, '--output', rows], { env });
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^undertone: This key was revoked\.( The rows so far are in .*rows\.csv\.part\.)? Continue with the same command and --resume\.\n$/,
  );
  assert.equal(await readFile(rows, 'utf8'), OLD);
});

test('Ctrl-C during a folder keeps the rows so far, and --resume adds the others', async (t) => {
  const { folder, rows } = await setUp(t);
  const voices = join(folder, 'voices');
  await mkdir(voices);
  const count = 24;
  for (let i = 0; i < count; i++) await copyFile(join(VOICES, 'sad-1016.wav'), join(voices, `${i}.wav`));
  const args = ['classify', voices, '--output', rows];
  // The shipped weights are slow enough to be stopped.
  const child = start(args, { env: SHIPPED });
  const waiting = setInterval(() => {
    if (!existsSync(`${rows}.part`)) return;
    clearInterval(waiting);
    child.kill('SIGINT');
  }, 5);
  const [stderr, ended] = await Promise.all([output(child.stderr), once(child, 'close')]);
  assert.deepEqual(ended, [null, 'SIGINT'], stderr);
  assert.equal(
    stderr,
    `undertone: Stopped. The rows so far are in ${rows}.part. Continue with the same command and --resume.\n`,
  );
  assert.equal(await readFile(rows, 'utf8'), OLD);
  const resumed = await undertone([...args, '--resume'], { env: SHIPPED });
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.match(resumed.stdout, /^\d+ of \d+ files, \d+ done before\n/);
  const names = (await readFile(rows, 'utf8')).trimEnd().split('\n').slice(1);
  assert.deepEqual(new Set(names.map((row) => row.split(',')[0])).size, count);
  assert.equal(names.length, count);
});
