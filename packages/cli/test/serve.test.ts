import assert from 'node:assert/strict';
import { execSync } from 'node:child_process';
import { openAsBlob } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_KEY_HEADER, PATHS } from '@undertone/contract';
import { DATABASE_FILE, SETTINGS } from '@undertone/server';
import { ROOT, serve, temporaryFolder, undertone, undertoneProcess, VOICES } from './support/undertone.ts';

const KEY = /\but_[0-9a-f]{12}_[\w-]{43}\b/;
const OWN_KEY = 'a-key-of-my-own-0123';

async function ask(url: string, key: string): Promise<Response> {
  const body = new FormData();
  body.set('file', await openAsBlob(join(VOICES, 'happy-1039.wav')), 'voice.wav');
  for (;;) {
    const answer = await fetch(url + PATHS.discrete, {
      method: 'POST',
      headers: { [API_KEY_HEADER]: key },
      body,
    });
    // On a slow machine the key store may be unavailable for a moment.
    if (answer.status !== 503) return answer;
    await sleep(250);
  }
}

/** Makes standard output look like a terminal. */
const TERMINAL = 'data:text/javascript,process.stdout.isTTY=true';

test('on a terminal the first start shows a link with a working key, the second a link without one', async (t) => {
  const dataDir = await temporaryFolder(t);
  const first = await serve(dataDir, ['--workers', '1'], {}, ['--import', TERMINAL]);
  const link = new URL(await first.prints(/Open {2}(\S+)/));
  const key = new URLSearchParams(link.hash.slice(1)).get('key') ?? '';
  assert.match(key, KEY);
  assert.equal((await ask(link.origin, key)).status, 200);
  const curl = await first.prints(/Or {4}(curl .*)/);
  assert.equal(
    JSON.parse(execSync(`${curl} --silent`, { cwd: ROOT, encoding: 'utf8' })).main_emotion,
    'angry',
  );
  assert.equal((await fetch(await first.prints(/Docs {2}(\S+)/))).status, 200);
  assert.equal(await first.stop(), 0);

  const second = await serve(dataDir, ['--workers', '1'], {}, ['--import', TERMINAL]);
  assert.match(await second.prints(/Open .*/), /keys create/);
  assert.equal(await second.stop(), 0);
  assert.doesNotMatch(second.printed(), KEY);
});

test('without a terminal the first key is in a private file, never in the log, and SIGTERM exits with 0', async (t) => {
  const dataDir = await temporaryFolder(t);
  const first = await serve(dataDir, ['--workers', '1']);
  const file = await first.prints(/"file":"([^"]+)"/);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  const [key = '', link = ''] = (await readFile(file, 'utf8')).split('\n');
  assert.equal(link, `${first.url}/#key=${key}`);
  const response = await ask(first.url, key);
  assert.equal(response.status, 200);
  const answer = (await response.json()) as object;
  assert.deepEqual(Object.keys(answer), ['main_emotion', 'confidence', 'all_predictions']);
  assert.equal(await first.stop(), 0);

  const second = await serve(dataDir, ['--workers', '1']);
  assert.equal((await ask(second.url, key)).status, 200);
  assert.equal(await second.stop(), 0);
  assert.doesNotMatch(first.printed() + second.printed(), KEY);
  const lines = first
    .printed()
    .split('\n')
    .filter((line) => line.startsWith('{'));
  assert.ok(lines.length > 3);
  for (const line of lines) assert.equal(JSON.stringify(JSON.parse(line)), line, 'no field is there twice');
});

test('the started process is the server, with its runtime flags, and accepts a new key until soon after its revocation', async (t) => {
  const dataDir = await temporaryFolder(t);
  const server = await serve(dataDir, ['--workers', '1'], { SERVICE_API_KEY: OWN_KEY });
  t.after(() => server.stop());
  const commandLine = (await readFile(`/proc/${server.pid}/cmdline`, 'utf8')).split('\0');
  assert.ok(commandLine.includes('--max-semi-space-size=4'), commandLine.join(' '));
  const environment = (await readFile(`/proc/${server.pid}/environ`, 'utf8')).split('\0');
  assert.ok(environment.includes('MALLOC_ARENA_MAX=2'));
  assert.doesNotMatch(server.printed(), /warning/i);

  assert.equal((await ask(server.url, OWN_KEY)).status, 200);
  const made = await undertone(['keys', 'create', 'laptop', '--data-dir', dataDir]);
  const key = made.stdout.trim();
  assert.equal((await ask(server.url, key)).status, 200);
  assert.equal((await undertone(['keys', 'revoke', 'laptop', '--data-dir', dataDir])).code, 0);
  // Takes at most a minute; otherwise the timeout of the test fails it.
  while ((await ask(server.url, key)).status === 200) await sleep(200);
  assert.equal((await ask(server.url, key)).status, 401);
  assert.doesNotMatch(server.printed(), KEY);
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

test('invalid settings are all named with exit code 2, and a flag overrides its variable', async () => {
  const { code, stderr } = await undertoneProcess(['serve', '--port', 'http'], {
    env: { SERVICE_PORT: '9000', SERVICE_WORKERS: '0' },
  });
  assert.equal(code, 2);
  assert.match(stderr, /SERVICE_PORT must be a whole number from 0 to 65535, not "http"/);
  assert.match(stderr, /SERVICE_WORKERS must be/);
  assert.doesNotMatch(stderr, /\n\s+at /);
});

test('a port in use is named, with a way to choose another', async (t) => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  t.after(() => other.close());
  const { port } = other.address() as { port: number };
  const dataDir = await temporaryFolder(t);
  const { code, stderr } = await undertoneProcess(['serve', '--port', String(port), '--data-dir', dataDir]);
  assert.equal(code, 1);
  assert.equal(
    stderr,
    `undertone: Port ${port} is in use. Stop the program that uses it, or choose another port: ` +
      'SERVICE_PORT=9000 or --port 9000.\n',
  );
});

test('a data folder that is a file is named, with a way to choose another', async (t) => {
  const file = join(await temporaryFolder(t), 'file');
  await writeFile(file, '');
  const { code, stderr } = await undertone(['serve', '--port', '0', '--data-dir', file]);
  assert.equal(code, 1);
  assert.match(stderr, /^undertone: The data folder .*file is not a folder\..*--data-dir/);
});

test('serve and keys name a damaged database, without a stack', async (t) => {
  const dataDir = await temporaryFolder(t);
  await writeFile(join(dataDir, DATABASE_FILE), 'this is not a database, whatever its name says');
  for (const args of [
    ['serve', '--port', '0'],
    ['keys', 'create', 'laptop'],
  ]) {
    const { code, stdout, stderr } = await undertone([...args, '--data-dir', dataDir]);
    assert.deepEqual([code, stdout], [1, ''], stderr);
    assert.match(stderr, /^undertone: The data folder .* cannot be used: .*not a database/);
    assert.doesNotMatch(stderr, /\n\s+at /);
  }
});

test('a models folder without a catalogue is named', async (t) => {
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

test('unknown weights are rejected with a list of the known ones', async (t) => {
  const dataDir = await temporaryFolder(t);
  const { code, stderr } = await undertone(['serve', '--port', '0', '--data-dir', dataDir], {
    env: { SERVICE_WEIGHTS: 'best' },
  });
  assert.equal(code, 1);
  assert.match(stderr, /^undertone: There are no weights named "best".*research, open/);
});
