import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { LIST_LIMIT, MODELS } from '@undertone/contract';
import { EmotionClient } from '@undertone/sdk';
import { freePort } from '@undertone/testing/ready';
import { silentWav } from '@undertone/testing/wav';
import { checkServer } from '../src/server-check.ts';
import { type Serving, serve, undertone, VOICES } from './support/undertone.ts';

const KEY = 'a-key-for-the-server-tests';
const angry = join(VOICES, 'angry-1013.wav');
const happy = join(VOICES, 'happy-1039.wav');

let folder: string;
let server: Serving;
let env: Record<string, string>;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'undertone-with-server-'));
  server = await serve(join(folder, 'data'), ['--rate-limit', '0'], { SERVICE_API_KEY: KEY });
  env = { SERVICE_API_KEY: KEY, SERVICE_URL: server.url };
});
after(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

test('classify --server gives the same rows as this machine, in the order of the files', async () => {
  const files = [angry, happy, angry];
  const here = await undertone(['classify', '--csv', ...files], { env });
  const there = await undertone(['classify', '--csv', '--server', ...files], { env });
  assert.deepEqual([there.code, there.stderr], [0, '']);
  assert.equal(there.stdout, here.stdout);
  const named = await undertone(['classify', '--jsonl', '--url', server.url, happy], {
    env: { SERVICE_API_KEY: KEY },
  });
  assert.equal(JSON.parse(named.stdout).main_emotion, 'happy', '--url implies --server');
  const unused = `http://127.0.0.1:${await freePort()}`;
  const own = await undertone(['classify', '--csv', '--url', unused, ...files], {
    env: { SERVICE_API_KEY: KEY, SERVICE_DISCRETE_URL: `${server.url}/v1/discrete/emotion` },
  });
  assert.equal(own.stdout, here.stdout, 'SERVICE_DISCRETE_URL goes first');
  assert.match(own.stderr, /^undertone: SERVICE_DISCRETE_URL overrides --url: using .*\n$/);
});

test('classify --server reads standard input, and fails one file at a time', async () => {
  const piped = await undertone(['classify', '--server', '--jsonl', '-', join(folder, 'missing.wav')], {
    env,
    input: silentWav(2),
  });
  assert.equal(piped.code, 1);
  const [short, missing] = piped.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(short.error.code, 'audio_too_short');
  assert.match(short.error.detail, /Without --server `undertone classify` takes recordings from 1 s on\./);
  assert.equal(missing.error.detail, 'There is no such file.');
});

test('models --url shows the models and the weights of the server', async () => {
  const { code, stdout } = await undertone(['models', '--url', server.url], { env });
  assert.equal(code, 0);
  for (const [id, emotions] of Object.entries(MODELS))
    assert.ok(stdout.includes(`${id}  ${emotions.join(', ')}`));
  assert.match(stdout, /^Weights in use\n {2}research {2}\(no commercial use\)$/m);
  assert.doesNotMatch(stdout, /^ {2}open/m, 'the server does not use them');
  for (const line of stdout.split('\n')) assert.ok(line.length <= 80, line);
  const json = await undertone(['models', '--server', '--json'], { env });
  const client = new EmotionClient({ apiKey: KEY, baseUrl: server.url });
  assert.deepEqual(JSON.parse(json.stdout), await client.models());
});

test('list --all pages through all requests, and delete takes many IDs', async () => {
  const initiate = `${server.url}/v1/asynch/upload/initiate?file_name=a.wav&part_count=1`;
  const headers = { 'x-api-key': KEY };
  const count = LIST_LIMIT.max + 3;
  for (let i = 0; i < count; i++) await (await fetch(initiate, { method: 'POST', headers })).json();
  const page = await undertone(['list'], { env });
  assert.match(page.stderr, /There are more\. Add --all, or --cursor /);
  const all = await undertone(['list', '--all', '--json'], { env });
  const { requests, next_cursor } = JSON.parse(all.stdout);
  assert.deepEqual([requests.length, next_cursor], [count, null]);
  const ids: string[] = requests.map(({ request_id }: { request_id: string }) => request_id);
  assert.equal(new Set(ids).size, count);
  const table = await undertone(['list', '--all', '--status', 'uploading'], { env });
  assert.equal(table.stdout.trimEnd().split('\n').length, count + 1);
  const unknown = '0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10';
  const some = await undertone(['delete', ids[0] ?? '', unknown, ...ids.slice(1)], { env });
  assert.equal(some.code, 3);
  assert.match(some.stderr, new RegExp(`^undertone: ${unknown}: `, 'm'));
  assert.equal(some.stderr.match(/^Deleted /gm)?.length, count);
  assert.match((await undertone(['list', '--all'], { env })).stderr, /There are no requests/);
  assert.equal((await undertone(['delete', unknown, unknown], { env })).code, 1);
});

test('doctor tries the address and the key', async (t) => {
  const local = { host: '127.0.0.1', port: await freePort() };
  const found = await checkServer({ ...local, url: `${server.url}/`, apiKey: KEY });
  assert.deepEqual([found?.state, found?.fix], ['ok', undefined]);
  assert.match(found?.found ?? '', /accepts the key in SERVICE_API_KEY; research weights/);
  const wrong = await checkServer({ ...local, url: server.url, apiKey: 'a-key-that-is-wrong' });
  assert.equal(wrong?.state, 'error');
  assert.match(wrong?.found ?? '', /refuses the key .*unknown, expired or revoked/);
  assert.match(wrong?.fix ?? '', /`undertone keys create`/);
  const without = await checkServer({ ...local, url: server.url });
  assert.equal(without?.state, 'warning');
  const nowhere = await checkServer({ ...local, url: `http://127.0.0.1:${local.port}`, apiKey: KEY });
  assert.match(nowhere?.found ?? '', /cannot be reached: .*ECONNREFUSED/);
  assert.equal(await checkServer({ ...local, apiKey: KEY }), null, 'its server is not started yet');
  assert.equal(await checkServer(local), null);
  const other = createServer((_, response) => response.end('another program')).listen(0, '127.0.0.1');
  t.after(() => other.close());
  await new Promise((resolve) => other.once('listening', resolve));
  const { port } = other.address() as AddressInfo;
  const foreign = await checkServer({ ...local, url: `http://127.0.0.1:${port}`, apiKey: KEY });
  assert.match(foreign?.found ?? '', /status 200, but is not Undertone/);
});

test('doctor --json has every finding, and the exit code of an error', async () => {
  const args = ['doctor', '--json', '--port', '0', '--data-dir', join(folder, 'data')];
  const good = await undertone(args, { env });
  assert.equal(good.code, 0, good.stderr);
  const { ready, checks } = JSON.parse(good.stdout);
  assert.equal(ready, true);
  const states = new Map(checks.map(({ name, state }: Record<string, string>) => [name, state]));
  assert.equal(states.get('server'), 'ok');
  for (const name of ['node', 'model', 'port', 'cores']) assert.equal(states.get(name), 'ok', name);
  const wrong = await undertone(args, { env: { ...env, SERVICE_API_KEY: 'a-key-that-is-wrong' } });
  assert.equal(wrong.code, 1);
  const answer = JSON.parse(wrong.stdout);
  assert.equal(answer.ready, false);
  const { state, fix } = answer.checks.find(({ name }: { name: string }) => name === 'server');
  assert.equal(state, 'error');
  assert.match(fix, /SERVICE_API_KEY/);
});
