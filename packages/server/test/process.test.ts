import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { API_KEY_HEADER, PATHS } from '@undertone/contract';
import { tempDir } from './support/app.ts';
import { FORM_TYPE, fileForm } from './support/form.ts';
import { head, RawClient } from './support/socket.ts';
import { wav } from './support/wav.ts';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

interface Started {
  child: ChildProcess;
  output(): string;
  exit: Promise<number | null>;
}

function start(env: Record<string, string>): Started {
  const { SERVICE_API_KEY: _key, ...clean } = process.env;
  const child = spawn(process.execPath, [MAIN], {
    env: { ...clean, SERVICE_PORT: '0', SERVICE_WORKERS: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  after(() => child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const exit = once(child, 'exit').then(([code]) => code as number | null);
  return { child, output: () => output, exit };
}

async function port(server: Started): Promise<number> {
  for (;;) {
    const url = /"url":"http:\/\/127\.0\.0\.1:(\d+)"/.exec(server.output());
    if (url) return Number(url[1]);
    if (server.child.exitCode !== null) throw new Error(server.output());
    await sleep(20);
  }
}

test('the first start makes a key, shows it once and says where it is kept', async () => {
  const dataDir = await tempDir();
  const first = start({ SERVICE_DATA_DIR: dataDir });
  const url = `http://127.0.0.1:${await port(first)}`;
  while (!first.output().includes('SHA-256')) await sleep(20);
  const key = /ut_\w+_[\w-]{43}/.exec(first.output())?.[0] ?? '';
  assert.ok(first.output().includes(dataDir));
  const response = await fetch(url + PATHS.models, { headers: { [API_KEY_HEADER]: key } });
  assert.equal(response.status, 200);
  first.child.kill('SIGTERM');
  assert.equal(await first.exit, 0);

  const second = start({ SERVICE_DATA_DIR: dataDir });
  const again = await fetch(`http://127.0.0.1:${await port(second)}${PATHS.models}`, {
    headers: { [API_KEY_HEADER]: key },
  });
  assert.equal(again.status, 200);
  assert.doesNotMatch(second.output(), /ut_/);
  second.child.kill('SIGTERM');
  assert.equal(await second.exit, 0);
});

test('a signal lets what is in flight finish, with readiness off; then the process is gone', async () => {
  const env = {
    SERVICE_DATA_DIR: await tempDir(),
    SERVICE_API_KEY: 'key-for-this-test',
    SERVICE_DRAIN_SECONDS: '1',
  };
  const server = start(env);
  const at = await port(server);
  const body = fileForm(wav());
  const client = new RawClient(at).send(
    head('POST', PATHS.discrete, {
      [API_KEY_HEADER]: 'key-for-this-test',
      'content-type': FORM_TYPE,
      'content-length': body.length,
    }),
  );
  client.send(body.subarray(0, 100_000));
  await sleep(100);
  server.child.kill('SIGTERM');
  await sleep(200);
  const ready = await fetch(`http://127.0.0.1:${at}${PATHS.ready}`);
  assert.equal(ready.status, 503);
  // Past the time in which others are still let in: only what had begun goes on.
  await sleep(1_200);
  await assert.rejects(fetch(`http://127.0.0.1:${at}${PATHS.health}`));
  client.send(body.subarray(100_000));
  assert.equal((await client.answer()).status, 200);
  assert.equal(await server.exit, 0);
});

test('a second signal ends the process at once', async () => {
  const server = start({ SERVICE_DATA_DIR: await tempDir(), SERVICE_API_KEY: 'key-for-this-test' });
  const at = await port(server);
  const client = new RawClient(at).send(
    head('POST', PATHS.discrete, {
      [API_KEY_HEADER]: 'key-for-this-test',
      'content-type': FORM_TYPE,
      'content-length': 100_000,
    }),
  );
  await sleep(100);
  server.child.kill('SIGTERM');
  await sleep(100);
  assert.equal(server.child.exitCode, null);
  server.child.kill('SIGINT');
  assert.equal(await server.exit, 1);
  client.destroy();
});

test('settings that make no sense stop the start and are all named', async () => {
  const server = start({
    SERVICE_PORT: 'eighty',
    SERVICE_WEIGHTS: 'best',
    SERVICE_DATA_DIR: await tempDir(),
  });
  assert.equal(await server.exit, 1);
  assert.match(server.output(), /SERVICE_PORT must be [\s\S]*SERVICE_WEIGHTS must be /);
});

test('a port that is taken stops the start with a reason', async () => {
  const first = start({ SERVICE_DATA_DIR: await tempDir() });
  const taken = await port(first);
  const second = start({ SERVICE_DATA_DIR: await tempDir(), SERVICE_PORT: String(taken) });
  assert.equal(await second.exit, 1);
  assert.match(second.output(), /EADDRINUSE/);
  first.child.kill('SIGTERM');
  await first.exit;
});
