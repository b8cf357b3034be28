// A process that starts before its PostgreSQL and its S3, on a machine without a data folder.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_KEY_HEADER, PATHS } from '@undertone/contract';
import { tempDir } from '@undertone/testing/app';
import { COMMAND, TEST_MODELS } from '@undertone/testing/paths';
import { PostgresCluster } from '@undertone/testing/postgres-cluster';
import { problemOf } from '@undertone/testing/problem';
import { freePort, isReady } from '@undertone/testing/ready';
import { S3_CREDENTIALS } from '@undertone/testing/s3-server';

let cluster: PostgresCluster;
before(async () => {
  cluster = await PostgresCluster.start();
});
after(() => cluster?.remove());

async function start(env: Record<string, string>) {
  const [port, operationsPort] = [await freePort(), await freePort()];
  const { SERVICE_API_KEY: _key, ...clean } = process.env;
  const child = spawn(process.execPath, [COMMAND, 'serve'], {
    env: {
      ...clean,
      ...S3_CREDENTIALS,
      SERVICE_PORT: String(port),
      SERVICE_OPERATIONS_PORT: String(operationsPort),
      SERVICE_WORKERS: '1',
      SERVICE_MODELS_DIR: TEST_MODELS,
      SERVICE_S3_BUCKET: 'undertone',
      SERVICE_S3_ENDPOINT: 'http://127.0.0.1:1',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  after(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  return {
    url: `http://127.0.0.1:${port}`,
    operations: `http://127.0.0.1:${operationsPort}`,
    output: () => output,
    stop: async () => {
      child.kill('SIGTERM');
      const [code] = await once(child, 'exit');
      assert.equal(code, 0);
    },
  };
}

test('it waits for PostgreSQL, alive but not ready, and then writes the first key', async () => {
  const databaseUrl = await cluster.newDatabase();
  await cluster.stopServer();
  const dataDir = join(await tempDir(), 'not-there-yet');
  const server = await start({ SERVICE_DATABASE_URL: databaseUrl, SERVICE_DATA_DIR: dataDir });
  const { url, operations, output } = server;
  const health = (at: string) =>
    fetch(at + PATHS.health).then(
      ({ status }) => status,
      () => 0,
    );
  while ((await health(operations)) !== 200) await sleep(20);
  assert.equal(await health(url), 200);
  await problemOf(await fetch(operations + PATHS.ready), 'overloaded');
  await problemOf(await fetch(url + PATHS.models), 'overloaded');
  await sleep(500); // several attempts
  await cluster.startServer();
  while (!(await isReady(operations))) await sleep(20);
  while (!output().includes('created the first API key')) await sleep(20);
  assert.equal(output().match(/waiting for the store/g)?.length, 1, output());
  assert.match(output(), /"why":"its database cannot be reached"/);
  const [key = ''] = (await readFile(join(dataDir, 'first-key'), 'utf8')).split('\n');
  const models = await fetch(url + PATHS.models, { headers: { [API_KEY_HEADER]: key } });
  assert.equal(models.status, 200);
  await server.stop();
});

test('a first key that cannot be written is not kept', async () => {
  const databaseUrl = await cluster.newDatabase();
  const server = await start({ SERVICE_DATABASE_URL: databaseUrl, SERVICE_DATA_DIR: '/dev/null/nowhere' });
  while (!server.output().includes('there is no API key yet')) await sleep(20);
  const active = 'SELECT id FROM undertone.keys WHERE revoked_at IS NULL';
  while ((await cluster.query(active, databaseUrl)).length > 0) await sleep(20);
  await server.stop();
});
