import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { API_KEY_HEADER, type InitiateResult, PATHS } from '@undertone/contract';
import { tempDir } from '@undertone/testing/app';
import { AsynchClient, steadily } from '@undertone/testing/asynch-client';
import { FORM_TYPE, fileForm } from '@undertone/testing/form';
import { COMMAND, TEST_MODELS } from '@undertone/testing/paths';
import { head, RawClient } from '@undertone/testing/socket';
import { longWav, wav } from '@undertone/testing/wav';
import { openStores } from '../src/index.ts';

const KEY = 'key-for-this-test';

interface Started {
  child: ChildProcess;
  output(): string;
  exit: Promise<number | null>;
}

function start(env: Record<string, string>): Started {
  const { SERVICE_API_KEY: _key, ...clean } = process.env;
  const child = spawn(process.execPath, [COMMAND, 'serve'], {
    env: { ...clean, SERVICE_PORT: '0', SERVICE_WORKERS: '1', SERVICE_MODELS_DIR: TEST_MODELS, ...env },
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

async function untilInFlight(at: number): Promise<void> {
  for (let metrics = ''; !/^undertone_discrete_requests_in_flight 1$/m.test(metrics); await sleep(20)) {
    metrics = await (await fetch(`http://127.0.0.1:${at}${PATHS.metrics}`)).text();
  }
}

test('a signal turns readiness off, lets in-flight requests finish, and ends the process', async () => {
  const env = {
    SERVICE_DATA_DIR: await tempDir(),
    SERVICE_API_KEY: KEY,
    SERVICE_DRAIN_SECONDS: '2',
  };
  const server = start(env);
  const at = await port(server);
  const body = fileForm(wav());
  const client = new RawClient(at).send(
    head('POST', PATHS.discrete, {
      [API_KEY_HEADER]: KEY,
      'content-type': FORM_TYPE,
      'content-length': body.length,
    }),
  );
  client.send(body.subarray(0, 100_000));
  await untilInFlight(at);
  server.child.kill('SIGTERM');
  await sleep(5);
  // As when a process group gets the signal and `make` passes it on.
  server.child.kill('SIGTERM');
  const ask = (path: string) => fetch(`http://127.0.0.1:${at}${path}`);
  let ready: number;
  do ({ status: ready } = await ask(PATHS.ready));
  while (ready === 200);
  assert.equal(ready, 503);
  // After the drain time only in-flight requests continue.
  while (await ask(PATHS.health).catch(() => null)) await sleep(100);
  client.send(body.subarray(100_000));
  assert.equal((await client.answer()).status, 200);
  assert.equal(await server.exit, 0);
});

test('a second signal ends the process immediately', async () => {
  const server = start({ SERVICE_DATA_DIR: await tempDir(), SERVICE_API_KEY: KEY });
  const at = await port(server);
  const client = new RawClient(at).send(
    head('POST', PATHS.discrete, {
      [API_KEY_HEADER]: KEY,
      'content-type': FORM_TYPE,
      'content-length': 100_000,
    }),
  );
  await untilInFlight(at);
  server.child.kill('SIGTERM');
  await sleep(500);
  assert.equal(server.child.exitCode, null);
  server.child.kill('SIGINT');
  assert.equal(await server.exit, 1);
  client.destroy();
});

test('a signal during a slow upload and a running job requeues the job and exits after SERVICE_FINISH_SECONDS', async () => {
  const dataDir = await tempDir();
  const server = start({ SERVICE_DATA_DIR: dataDir, SERVICE_API_KEY: KEY, SERVICE_FINISH_SECONDS: '1' });
  const at = await port(server);
  const client = new AsynchClient(`http://127.0.0.1:${at}`, KEY);
  const id = await client.upload(longWav(1_800));
  const begun = (await (await steadily(() => client.initiate({}))).json()) as InitiateResult;
  const { pathname, search } = new URL(begun.presigned_urls[0]?.url ?? '');
  const slow = new RawClient(at).send(head('PUT', pathname + search, { 'content-length': 1_000_000 }));
  slow.send(Buffer.alloc(1000));
  for (;;) {
    const { status } = (await (await steadily(() => client.prediction(id))).json()) as { status: string };
    if (status === 'processing') break;
    await sleep(20);
  }
  const signalled = performance.now();
  server.child.kill('SIGTERM');
  assert.equal(await server.exit, 0);
  assert.ok(performance.now() - signalled < 4_000);
  await slow.closed;
  const stores = await openStores({ dataDir }, { kind: 'local' });
  const claim = await stores.requests.claim({ leaseMs: 1_000, running: [] });
  assert.deepEqual([claim?.request.id, claim?.failedAttempts], [id, 0]);
  await stores.close();
});

test('an early response reaches a client that keeps sending, 20 times out of 20; SERVICE_API_KEY is logged as env, an unknown variable as a warning', async () => {
  const server = start({ SERVICE_DATA_DIR: await tempDir(), SERVICE_API_KEY: KEY, SERVICE_WEIGHT: 'open' });
  const script = `
import sys, urllib.error, urllib.request
statuses = []
for size in [1_700_000, 15_000_000] * 10:
    request = urllib.request.Request(sys.argv[1], data=bytes(size), headers={"x-api-key": "wrong", "content-type": "x/y"})
    try:
        urllib.request.urlopen(request)
    except urllib.error.HTTPError as error:
        statuses.append(error.code)
    except OSError as error:
        statuses.append(str(error))
print(statuses)
`;
  const url = `http://127.0.0.1:${await port(server)}`;
  const { stdout } = await promisify(execFile)('python3', ['-c', script, url + PATHS.discrete]);
  assert.equal(stdout.trim(), `[${Array.from({ length: 20 }, () => 401).join(', ')}]`);

  await fetch(url + PATHS.models, { headers: { [API_KEY_HEADER]: KEY } });
  while (!server.output().includes('"key":"env"')) await sleep(20);
  assert.doesNotMatch(server.output(), /env_/);
  assert.match(server.output(), /Did you mean SERVICE_WEIGHTS\?/);
  server.child.kill('SIGTERM');
  assert.equal(await server.exit, 0);
});

test('a stored key in SERVICE_API_KEY is one caller, and is refused when revoked', async () => {
  const dataDir = await tempDir();
  const stores = await openStores({ dataDir }, { kind: 'local' });
  const { key, record } = await stores.keys.create('me');
  const server = start({ SERVICE_DATA_DIR: dataDir, SERVICE_API_KEY: key });
  const client = new AsynchClient(`http://127.0.0.1:${await port(server)}`, key);
  const { request_id } = (await (await steadily(() => client.initiate({}))).json()) as InitiateResult;
  assert.equal((await stores.requests.find(request_id))?.owner, record.id);
  while (!server.output().includes(`"key":"${record.id}"`)) await sleep(20);
  await stores.keys.revoke('me');
  for (let status = 200; status !== 401; await sleep(50)) {
    ({ status } = await steadily(() => client.prediction(request_id)));
    assert.ok([200, 202, 401, 404].includes(status));
  }
  server.child.kill('SIGTERM');
  assert.equal(await server.exit, 0);
  await stores.close();
});
