import assert from 'node:assert/strict';
import { openAsBlob } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { API_KEY_HEADER, PATHS } from '@undertone/contract';
import { SETTINGS } from '@undertone/server';
import { serve, temporaryFolder, undertone, VOICES } from './support/undertone.ts';

const KEY = /\but_[0-9a-f]{12}_[\w-]{43}\b/;

async function ask(url: string, key: string): Promise<Response> {
  const body = new FormData();
  body.set('file', await openAsBlob(join(VOICES, 'happy-1039.wav')), 'voice.wav');
  return fetch(url + PATHS.discrete, { method: 'POST', headers: { [API_KEY_HEADER]: key }, body });
}

test('the first start prints a key that works, the next one prints none, and a signal ends both well', async (t) => {
  const dataDir = await temporaryFolder(t);
  const first = await serve(dataDir, ['--workers', '1']);
  const [key = ''] = KEY.exec(first.printed) ?? [];
  const response = await ask(first.url, key);
  assert.equal(response.status, 200);
  const answer = (await response.json()) as object;
  assert.deepEqual(Object.keys(answer), ['main_emotion', 'confidence', 'all_predictions']);
  assert.equal(await first.stop(), 0);

  const second = await serve(dataDir, ['--workers', '1']);
  assert.doesNotMatch(second.printed, KEY);
  assert.equal((await ask(second.url, key)).status, 200);
  assert.equal(await second.stop(), 0);
});

test('a running server knows of new and revoked keys at once', async (t) => {
  const dataDir = await temporaryFolder(t);
  const server = await serve(dataDir, ['--workers', '1'], { SERVICE_API_KEY: 'a-key-of-my-own' });
  assert.doesNotMatch(server.printed, KEY);
  assert.equal((await ask(server.url, 'a-key-of-my-own')).status, 200);
  const made = await undertone(['keys', 'create', 'laptop', '--data-dir', dataDir]);
  const key = made.stdout.trim();
  assert.equal((await ask(server.url, key)).status, 200);
  const revoked = await undertone(['keys', 'revoke', key.split('_')[1] ?? '', '--data-dir', dataDir]);
  assert.equal(revoked.code, 0);
  assert.equal((await ask(server.url, key)).status, 401);
  assert.equal(await server.stop(), 0);
});

test('serve --help shows every setting with its variable and its default', async () => {
  const { stdout } = await undertone(['serve', '--help']);
  const help = stdout.replaceAll(/\s+/g, ' ');
  for (const { env, default: fallback, description } of Object.values(SETTINGS)) {
    assert.ok(help.includes(env), env);
    assert.ok(help.includes(description), `${env}: ${description}`);
    if (fallback !== '') assert.ok(help.includes(`(default: ${fallback}, env: ${env})`), env);
  }
  assert.doesNotMatch(stdout, /--api-key/);
});

test('settings that make no sense stop the start, each named, and a flag goes before its variable', async () => {
  const { code, stderr } = await undertone(['serve', '--port', 'http'], {
    env: { SERVICE_PORT: '9000', SERVICE_WEIGHTS: 'best', SERVICE_WORKERS: '0' },
  });
  assert.equal(code, 1);
  assert.match(stderr, /SERVICE_PORT must be a whole number from 0 to 65535, not "http"/);
  assert.match(stderr, /SERVICE_WEIGHTS must be one of research, open, not "best"/);
  assert.match(stderr, /SERVICE_WORKERS must be/);
  assert.doesNotMatch(stderr, /\n\s+at /);
});

test('a port that is taken is named, with the way out', async (t) => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  t.after(() => other.close());
  const { port } = other.address() as { port: number };
  const dataDir = await temporaryFolder(t);
  const { code, stderr } = await undertone(['serve', '--port', String(port), '--data-dir', dataDir]);
  assert.equal(code, 1);
  assert.match(stderr, new RegExp(`^undertone: Port ${port} of 127\\.0\\.0\\.1 is taken\\..*--port`));
});

test('a data folder that is a file is named, with the way out', async (t) => {
  const file = join(await temporaryFolder(t), 'file');
  await writeFile(file, '');
  const { code, stderr } = await undertone(['serve', '--port', '0', '--data-dir', file]);
  assert.equal(code, 1);
  assert.match(stderr, /^undertone: The data folder .*file is not a folder\..*--data-dir/);
});

test('a models folder without models is named, with the way out', async (t) => {
  const folder = await temporaryFolder(t);
  const { code, stderr } = await undertone([
    'serve',
    '--port',
    '0',
    '--data-dir',
    folder,
    '--models-dir',
    folder,
  ]);
  assert.equal(code, 1);
  assert.match(stderr, /^undertone: The model catalogue .*catalog\.json cannot be read/);
});
