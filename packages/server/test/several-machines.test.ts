// Two API processes and two workers over one PostgreSQL and one S3, all real, with the shipped weights; any of them may be killed
// at any time.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_KEY_HEADER, ASYNCH_PATHS, PATHS } from '@undertone/contract';
import { tempDir } from '@undertone/testing/app';
import { AsynchClient, steadily } from '@undertone/testing/asynch-client';
import { FORM_TYPE, fileForm } from '@undertone/testing/form';
import { PostgresCluster } from '@undertone/testing/postgres-cluster';
import { S3_CREDENTIALS, S3Server } from '@undertone/testing/s3-server';
import { ServerProcess } from '@undertone/testing/server-process';
import { LONG_TIMEOUT_MS } from '@undertone/testing/timeouts';
import { longWav, wav } from '@undertone/testing/wav';

describe('several machines', () => {
  let cluster: PostgresCluster;
  let s3: S3Server;
  let apis: [ServerProcess, ServerProcess];
  let workers: [ServerProcess, ServerProcess];
  let databaseUrl: string;
  let blobs: import('../src/stores/blobs.ts').BlobStore;

  before(async () => {
    Object.assign(process.env, S3_CREDENTIALS);
    [cluster, s3] = await Promise.all([PostgresCluster.start(), S3Server.shared()]);
    databaseUrl = await cluster.newDatabase();
    const env = {
      SERVICE_DATABASE_URL: databaseUrl,
      SERVICE_S3_BUCKET: await s3.newBucket(),
      SERVICE_S3_ENDPOINT: s3.endpoint,
      SERVICE_WORKERS: '1',
      SERVICE_ASYNCH_JOBS: '1',
      SERVICE_LOG_LEVEL: 'info',
    };
    const folder = await tempDir();
    const make = (role: string) => new ServerProcess(folder, { ...env, SERVICE_ROLE: role });
    apis = [make('api'), make('api')];
    workers = [make('worker'), make('worker')];
    await Promise.all([...apis, ...workers].map((process) => process.start()));
    const { S3BlobStore } = await import('../src/stores/s3/blobs.ts');
    const s3Options = {
      prefix: 'undertone/',
      region: 'us-east-1',
      publicEndpoint: '',
      addressing: 'auto',
      answerMs: LONG_TIMEOUT_MS,
    } as const;
    blobs = new S3BlobStore({ ...s3Options, bucket: env.SERVICE_S3_BUCKET, endpoint: s3.endpoint });
  });
  after(async () => {
    for (const process of [...(apis ?? []), ...(workers ?? [])]) await process.end('SIGKILL');
    await s3?.remove();
    await cluster?.remove();
  });

  const clientOf = (process: ServerProcess) => new AsynchClient(process.url, process.key);

  async function nothingLeft(): Promise<void> {
    for (let tries = 0; (await blobs.groups()).length > 0; tries++) {
      assert.ok(tries < 200, 'recordings were left in the bucket');
      await sleep(100);
    }
  }
  async function processing(count: number): Promise<void> {
    for (;;) {
      const rows = await cluster.query(
        `SELECT 1 FROM undertone.requests WHERE state = 'processing'`,
        databaseUrl,
      );
      if (rows.length >= count) return;
      await sleep(20);
    }
  }

  test('a worker has only health and metrics over HTTP', async () => {
    for (const path of [PATHS.health, PATHS.ready, PATHS.metrics]) {
      assert.equal((await fetch(workers[0].url + path)).status, 200, path);
    }
    for (const path of [
      PATHS.models,
      PATHS.openapi,
      `${PATHS.asynch}/upload/initiate?file_name=a&part_count=1`,
    ]) {
      assert.equal((await fetch(workers[0].url + path)).status, 404, path);
    }
  });

  test('an upload to one process is completed at another and read at both', async () => {
    const [one, other] = [clientOf(apis[0]), clientOf(apis[1])];
    const upload = await one.send(longWav(30), 3);
    assert.equal((await other.complete(upload)).status, 200);
    const result = await one.result(upload.request_id);
    assert.equal(result.emotions.length, 6);
    assert.deepEqual(await other.result(upload.request_id), result);
    await nothingLeft();

    const lines = [...apis, ...workers].flatMap((process) => process.linesAbout(upload.request_id));
    const inOrder = lines.toSorted((a, b) => (String(a['time']) < String(b['time']) ? -1 : 1));
    const steps = inOrder.map(({ role, msg, route }) => `${role}: ${msg === 'answered' ? route : msg}`);
    const expected = [
      `api: ${PATHS.asynch}${ASYNCH_PATHS.initiate}`,
      `api: ${PATHS.asynch}${ASYNCH_PATHS.complete}`,
      'worker: recording claimed',
      'worker: recording completed',
    ];
    assert.deepEqual(
      [...new Set(steps)].filter((step) => expected.includes(step)).toSorted(),
      expected.toSorted(),
    );
    const [initiated] = inOrder;
    for (const line of inOrder.filter(({ role }) => role === 'worker')) {
      assert.equal(line['request_id'], initiated?.['request_id'], 'the call that created the recording');
    }
  });

  test('after killing a worker and an API process and restarting PostgreSQL, all recordings finish with the same answers', async () => {
    const recording = longWav(150);
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) ids.push(await clientOf(apis[i % 2] as ServerProcess).upload(recording, 3));
    await processing(2);
    await workers[0].end('SIGKILL');
    await cluster.stopServer();
    const client = clientOf(apis[1]);
    const away = await client.prediction(ids[0] as string);
    assert.equal(away.status, 503);
    assert.ok(away.headers.get('retry-after'));
    const { url, key } = apis[1];
    const ready = await fetch(url + PATHS.ready);
    assert.equal(ready.status, 200, 'short recordings are still answered');
    const short = { method: 'POST', headers: { [API_KEY_HEADER]: key, 'content-type': FORM_TYPE } };
    assert.equal((await fetch(url + PATHS.discrete, { ...short, body: fileForm(wav()) })).status, 200);
    await cluster.startServer();
    await apis[0].end('SIGKILL');
    // Takes two seconds on an idle machine.
    for (let tries = 0; (await client.prediction(ids[0] as string)).status === 503; tries++) {
      assert.ok(tries < 40, 'it did not come back');
      await sleep(50);
    }
    await Promise.all([workers[0].start(), apis[0].start()]);
    const results = [];
    for (const id of ids) {
      const response = await clientOf(apis[0]).settled(id);
      assert.equal(response.status, 200, await response.clone().text());
      results.push(((await response.json()) as { emotions: unknown[] }).emotions);
    }
    assert.equal(results[0]?.length, 30);
    for (const emotions of results) assert.deepEqual(emotions, results[0]);
    await nothingLeft();
  });

  test('an orderly shutdown requeues running jobs without counting an attempt', async () => {
    const client = clientOf(apis[0]);
    const id = await client.upload(longWav(150), 1);
    await processing(1);
    await Promise.all(workers.map((worker) => worker.end('SIGTERM')));
    const [row] = await cluster.query(
      `SELECT state, failed_attempts FROM undertone.requests WHERE id = '${id}'`,
      databaseUrl,
    );
    assert.deepEqual(row, { state: 'queued', failed_attempts: 0 });
    assert.equal((await steadily(() => client.delete(id))).status, 204);
    await nothingLeft();
  });
});
