import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_KEY_HEADER, MODELS, type ModelList, PATHS } from '@undertone/contract';
import { ModelList as ModelListSchema } from '@undertone/contract/schemas';
import { postFile, readProblem, shippedClassifier, testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { StreamClient } from '@undertone/testing/stream-client';
import { SHORT_TIMEOUT_MS } from '@undertone/testing/timeouts';
import { wav } from '@undertone/testing/wav';
import Value from 'typebox/value';
import { buildOperationsApp } from '../../src/app.ts';
import { DATABASE_FILE } from '../../src/index.ts';

const service = await testApp();

test('health needs no key', async () => {
  const response = await service.app.inject({ url: PATHS.health });
  assert.deepEqual([response.statusCode, response.json()], [200, { status: 'ok' }]);
});

describe('readiness', () => {
  test('needs no key', async () => {
    const response = await service.app.inject({ url: PATHS.ready });
    assert.deepEqual([response.statusCode, response.json()], [200, { status: 'ready' }]);
  });

  test('ends with the stop signal, while requests are still answered', async () => {
    const stop = new AbortController();
    const stopping = await testApp({}, { stopping: stop.signal });
    stop.abort();
    readProblem(await stopping.app.inject({ url: PATHS.ready }), 'overloaded');
    const response = await postFile(stopping, wav());
    assert.equal(response.statusCode, 200);
    assert.equal(response.headers.connection, 'close');
  });

  test('is lost while the store cannot be written, and comes back', async () => {
    const { app, dataDir } = await testApp({}, { kind: 'local', answerMs: SHORT_TIMEOUT_MS });
    const other = new DatabaseSync(join(dataDir, DATABASE_FILE));
    other.exec('BEGIN IMMEDIATE');
    const refused = await app.inject({ url: PATHS.ready });
    assert.match(readProblem(refused, 'overloaded').detail, /database is locked/);
    other.close();
    while ((await app.inject({ url: PATHS.ready })).statusCode !== 200) await sleep(50);
  });

  test('checks the stores at most once a second, however many ask', async () => {
    const { app, stores } = await testApp();
    let checks = 0;
    const check = stores.requests.checkWritable.bind(stores.requests);
    stores.requests.checkWritable = () => {
      checks++;
      return check();
    };
    const start = performance.now();
    for (let i = 0; i < 20; i++) assert.equal((await app.inject({ url: PATHS.ready })).statusCode, 200);
    await Promise.all(Array.from({ length: 20 }, () => app.inject({ url: PATHS.ready })));
    assert.ok(checks <= 1 + (performance.now() - start) / 1_000, String(checks));
  });
});

test('the list of models has their emotions, accuracy and licence', async () => {
  const classifier = await shippedClassifier();
  const { app, key } = await testApp({}, { classifier });
  const response = await app.inject({ url: PATHS.models, headers: { [API_KEY_HEADER]: key } });
  assert.equal(response.statusCode, 200);
  const list = response.json() as ModelList;
  assert.ok(Value.Check(ModelListSchema, list), response.body);
  assert.deepEqual(Object.fromEntries(list.models.map(({ id, emotions }) => [id, emotions])), MODELS);
  assert.deepEqual(
    list.models.filter((model) => model.default).map(({ id }) => id),
    ['4emotions'],
  );
  const { weights } = classifier;
  assert.equal(list.weights.id, 'research');
  assert.equal(list.weights.licence, weights.licence);
  assert.equal(list.weights.commercial_use, weights.commercial_use);
  assert.deepEqual(list.models[0]?.figures, weights.figures['4emotions']);
});

test('no other spelling of /metrics gets past a proxy that blocks it', async () => {
  for (const url of ['/metrics/', '//metrics', '/%6detrics', '/metrics//?x=1', '/metric%73']) {
    readProblem(await service.app.inject({ url }), 'not_found');
  }
  assert.equal((await service.app.inject({ url: '/metrics?x=1' })).statusCode, 200);
});

test('SERVICE_OPERATIONS_PORT moves /metrics and /readyz, with /healthz, to a port of their own', async () => {
  const { app, services } = await testApp({ SERVICE_OPERATIONS_PORT: '9999' });
  const operations = await buildOperationsApp(services);
  for (const url of [PATHS.metrics, PATHS.ready, PATHS.health]) {
    const expected = url === PATHS.health ? 200 : 401;
    assert.equal((await app.inject({ url })).statusCode, expected, url);
    assert.equal((await operations.inject({ url })).statusCode, 200, url);
  }
  assert.equal((await operations.inject({ url: PATHS.models })).statusCode, 404);
  await operations.close();
});

test('metrics cover requests, stages, audio, threads, the queue and the event loop', async () => {
  const fresh = await testApp();
  await postFile(fresh, wav({ seconds: 5 }));
  await fresh.app.inject({ url: '/secret-path?token=secret' });
  const { body, headers } = await fresh.app.inject({ url: PATHS.metrics });
  assert.match(String(headers['content-type']), /^text\/plain/);
  const value = (name: string) => {
    const line = body.split('\n').find((entry) => entry.startsWith(`${name} `));
    return Number(line?.split(' ').at(-1));
  };
  assert.equal(value('undertone_requests_total{method="POST",route="/v1/discrete/emotion",status="200"}'), 1);
  assert.equal(value('undertone_requests_total{method="GET",route="unmatched",status="401"}'), 1);
  assert.equal(value('undertone_audio_seconds_total{interface="discrete"}'), 5);
  for (const stage of ['receive', 'queue', 'decode', 'model', 'total']) {
    assert.equal(value(`undertone_discrete_stage_seconds_count{stage="${stage}"}`), 1);
  }
  assert.equal(value('undertone_inference_threads'), 1);
  assert.equal(value('undertone_inference_threads_busy'), 0);
  assert.equal(value('undertone_queue_length{priority="discrete"}'), 0);
  assert.equal(value('undertone_queue_length{priority="asynch"}'), 0);
  assert.equal(value('undertone_discrete_requests_in_flight'), 0);
  assert.ok(value('undertone_event_loop_delay_max_seconds') >= 0);
  assert.ok(!body.includes('secret'));
});

test('SERVICE_METRICS_OWNERS shows what each owner uses; without it no label has a name', async () => {
  const SERVICE_API_KEY = 'key-from-environment';
  const env = { SERVICE_API_KEY };
  for (const shown of [true, false]) {
    const own = await testApp({ ...env, SERVICE_METRICS_OWNERS: String(shown) });
    const { key } = await own.stores.keys.create('laptop', { owner: 'anna' });
    await own.stores.ledger.addAudio(new Map([['anna', 90]]));
    for (const by of [key, SERVICE_API_KEY]) await (await AsynchClient.of(own, by)).initiate({});
    const { url } = await own.listen();
    const stream = new StreamClient(url, key);
    await stream.received(1);
    const { body } = await own.app.inject({ url: PATHS.metrics });
    const values = {
      '{owner="anna",resource="open"}': 1,
      '{owner="anna",resource="audio_seconds"}': 90,
      '{owner="anna",resource="streams"}': 1,
      '{owner="env",resource="open"}': 1,
    };
    for (const [labels, value] of Object.entries(values)) {
      assert.equal(body.includes(`undertone_owner_use${labels} ${value}\n`), shown, labels);
    }
    assert.ok(!body.includes('env_'));
    assert.equal(body.includes('anna'), shown);
    stream.socket.terminate();
  }
});

test('metrics show a blocked event loop', async () => {
  const fresh = await testApp();
  const delay = async () => {
    const { body } = await fresh.app.inject({ url: PATHS.metrics });
    return Number(/^undertone_event_loop_delay_max_seconds (\S+)/m.exec(body)?.[1]);
  };
  await new Promise((resolve) => setTimeout(resolve, 30));
  const end = performance.now() + 300;
  while (performance.now() < end);
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.ok((await delay()) > 0.25);
});
