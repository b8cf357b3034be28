import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_KEY_HEADER, MODELS, type ModelList, PATHS } from '@undertone/contract';
import { ModelList as ModelListSchema } from '@undertone/contract/schemas';
import { postFile, readProblem, shippedClassifier, type TestApp, testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { StreamClient } from '@undertone/testing/stream-client';
import { SHORT_TIMEOUT_MS } from '@undertone/testing/timeouts';
import { wav } from '@undertone/testing/wav';
import Value from 'typebox/value';
import { buildOperationsApp } from '../../src/app.ts';
import { DATABASE_FILE, readSettings } from '../../src/index.ts';
import { Metrics } from '../../src/operators/metrics.ts';
import { StoreUnavailableError } from '../../src/stores/errors.ts';

const service = await testApp();

test('health needs no key', async () => {
  const response = await service.app.inject({ url: PATHS.health });
  assert.deepEqual([response.statusCode, response.json()], [200, { status: 'ok' }]);
});

describe('readiness', () => {
  test('needs no key', async () => {
    const response = await service.app.inject({ url: PATHS.ready });
    const stores = { database: { up: true }, recordings: { up: true } };
    assert.deepEqual([response.statusCode, response.json()], [200, { status: 'ready', stores }]);
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

  test('stays while a store cannot be written, which the body and the metrics report', async () => {
    const options = { kind: 'local', answerMs: SHORT_TIMEOUT_MS, storeCheckMs: 0 } as const;
    const { app, dataDir } = await testApp({}, options);
    const metric = async (store: string) => {
      const { body } = await app.inject({ url: PATHS.metrics });
      return new RegExp(`^undertone_store_up\\{store="${store}"\\} (\\d)$`, 'm').exec(body)?.[1];
    };
    const other = new DatabaseSync(join(dataDir, DATABASE_FILE));
    other.exec('BEGIN IMMEDIATE');
    const locked = await app.inject({ url: PATHS.ready });
    assert.equal(locked.statusCode, 200);
    assert.deepEqual(locked.json().stores, {
      database: { up: false, reason: 'its database is locked by another program' },
      recordings: { up: true },
    });
    assert.deepEqual([await metric('database'), await metric('recordings')], ['0', '1']);
    other.close();
    const { stores } = (await app.inject({ url: PATHS.ready })).json();
    assert.deepEqual(stores.database, { up: true });
    assert.equal(await metric('database'), '1');
  });

  test('is lost while no key can be checked: the database is unavailable and no key is cached', async () => {
    const { app, key, stores } = await testApp({}, { storeCheckMs: 0 });
    const away = async () => Promise.reject(new StoreUnavailableError('its database cannot be reached'));
    const models = () => app.inject({ url: PATHS.models, headers: { [API_KEY_HEADER]: key } });
    const { lookUp, lookUpId } = stores.keys;
    stores.requests.checkWritable = away;
    Object.assign(stores.keys, { lookUp: away, lookUpId: away });
    const refused = readProblem(await app.inject({ url: PATHS.ready }), 'overloaded');
    assert.match(refused.detail, /No key can be checked: its database cannot be reached/);
    Object.assign(stores.keys, { lookUp, lookUpId });
    assert.equal((await models()).statusCode, 200, 'now the key is cached');
    Object.assign(stores.keys, { lookUp: away, lookUpId: away });
    assert.equal((await app.inject({ url: PATHS.ready })).statusCode, 200);
  });

  test('of a worker, which has no callers, needs no keys', async () => {
    const shared = {
      SERVICE_ROLE: 'worker',
      SERVICE_DATABASE_URL: 'postgres://unused',
      SERVICE_S3_BUCKET: 'unused',
    };
    const { services, stores } = await testApp({}, { storeCheckMs: 0 });
    const settings = readSettings(shared);
    const away = async () => Promise.reject(new StoreUnavailableError('its database cannot be reached'));
    stores.requests.checkWritable = away;
    stores.keys.lookUpId = away;
    const worker = await buildOperationsApp({ ...services, settings });
    assert.equal((await worker.inject({ url: PATHS.ready })).statusCode, 200);
    await worker.close();
  });

  test('writes to the stores at most every 10 seconds, however many ask', async () => {
    const { app, stores } = await testApp();
    let checks = 0;
    for (const store of [stores.requests, stores.blobs]) {
      const check = store.checkWritable.bind(store);
      store.checkWritable = () => {
        checks++;
        return check();
      };
    }
    for (let i = 0; i < 20; i++) assert.equal((await app.inject({ url: PATHS.ready })).statusCode, 200);
    const urls = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? PATHS.ready : PATHS.metrics));
    await Promise.all(urls.map((url) => app.inject({ url })));
    assert.equal(checks, 2);
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

/** The value of a metric, by its full name with labels; NaN if there is none. */
async function read({ app }: TestApp, name: string): Promise<number> {
  const { body } = await app.inject({ url: PATHS.metrics });
  const line = body.split('\n').find((entry) => entry.startsWith(`${name} `));
  return Number(line?.split(' ').at(-1) ?? Number.NaN);
}

test('the p99 of the event loop is that of the last interval, not of the whole life', async () => {
  const fresh = await testApp({}, { metrics: new Metrics({ loopIntervalMs: 50 }) });
  await sleep(20);
  const end = performance.now() + 200;
  while (performance.now() < end);
  await sleep(1);
  assert.ok((await read(fresh, 'undertone_event_loop_delay_max_seconds')) > 0.15);
  for (let tries = 0; (await read(fresh, 'undertone_event_loop_delay_p99_seconds')) > 0.1; tries++) {
    assert.ok(tries < 200);
    await sleep(20);
  }
  assert.ok((await read(fresh, 'undertone_event_loop_delay_max_seconds')) > 0.15);
});

test('counters of failures are there at 0 before the first one, so that alerts see it', async () => {
  const fresh = await testApp();
  const { body } = await fresh.app.inject({ url: PATHS.metrics });
  for (const series of [
    'undertone_asynch_jobs_total{outcome="failed"}',
    'undertone_webhooks_total{outcome="given_up"}',
    'undertone_sweeps_total{outcome="failed"}',
    'undertone_expired_unprocessed_total',
    'undertone_connections_refused_total{reason="timeout"}',
  ]) {
    assert.ok(body.includes(`\n${series} 0\n`), series);
  }
});

describe('metrics of what waits', () => {
  test('have the age of the oldest request, abandoned ones and undelivered webhooks', async () => {
    const clock = { now: Date.now() };
    const make = async () => {
      const fresh = await testApp({ SERVICE_WEBHOOK_PRIVATE: 'true' }, { now: () => clock.now });
      return { fresh, client: await AsynchClient.of(fresh) };
    };
    const { fresh, client } = await make();
    await client.upload(wav(), 1, { webhook_url: 'http://127.0.0.1:1/' });
    clock.now += 1_000_000;
    await client.upload(wav());
    assert.equal(await read(fresh, 'undertone_asynch_oldest_waiting_seconds'), 1_000);
    assert.equal(await read(fresh, 'undertone_asynch_requests{state="queued"}'), 2);
    assert.equal(await read(fresh, 'undertone_asynch_abandoned_requests'), 0);

    const { requests, webhooks } = fresh.stores;
    const first = await requests.claim({ leaseMs: 100, running: [] });
    assert.ok(first);
    assert.deepEqual(await requests.backlog(), { abandoned: 0, oldestMs: 0 });
    clock.now += 200;
    assert.deepEqual(await requests.backlog(), { abandoned: 1, oldestMs: 1_000_200 });
    const again = await requests.claim({ leaseMs: 100, running: [] });
    assert.equal(await webhooks.count(), 0);
    await requests.finish(again?.request.id ?? '', again?.lease ?? '', { result: '{}' });
    assert.equal(await webhooks.count(), 1);
    assert.equal(await read(fresh, 'undertone_webhooks_waiting'), 0, 'read again after 10 seconds');
  });

  test('are read from the database once for many scrapes', async () => {
    const fresh = await testApp();
    let reads = 0;
    const count = fresh.stores.requests.countByState.bind(fresh.stores.requests);
    fresh.stores.requests.countByState = () => {
      reads++;
      return count();
    };
    for (let i = 0; i < 5; i++) await read(fresh, 'undertone_ready');
    assert.equal(reads, 1);
  });

  test('are missing while the database cannot be read, and the other metrics are not', async () => {
    const fresh = await testApp();
    fresh.stores.requests.countByState = () => Promise.reject(new StoreUnavailableError('it is gone'));
    assert.equal(await read(fresh, 'undertone_asynch_oldest_waiting_seconds'), Number.NaN);
    assert.equal(await read(fresh, 'undertone_ready'), 1);
    assert.equal(await read(fresh, 'undertone_store_errors_total{store="requests",reason="unavailable"}'), 1);
  });
});

test('metrics have error codes, store calls, the sweep, readiness and what runs', async () => {
  const stop = new AbortController();
  const fresh = await testApp({}, { stopping: stop.signal });
  await fresh.app.inject({ url: PATHS.models });
  await fresh.app.inject({ url: PATHS.models, headers: { [API_KEY_HEADER]: fresh.key } });
  await fresh.sweep.run();
  assert.equal(await read(fresh, 'undertone_problems_total{code="missing_api_key"}'), 1);
  assert.ok((await read(fresh, 'undertone_store_seconds_count{store="keys"}')) >= 1);
  assert.equal(await read(fresh, 'undertone_sweeps_total{outcome="succeeded"}'), 1);
  const swept = await read(fresh, 'undertone_sweep_last_success_timestamp_seconds');
  assert.ok(Math.abs(swept - Date.now() / 1000) < 60);
  assert.equal(await read(fresh, 'undertone_ready'), 1);
  stop.abort();
  assert.equal(await read(fresh, 'undertone_ready'), 0);
  const { body } = await fresh.app.inject({ url: PATHS.metrics });
  assert.match(
    body,
    /^undertone_build_info\{version="\d+\.\d+\.\d+[^"]*",role="all",weights="research",node="v24[^"]*"\} 1$/m,
  );
  fresh.stores.requests.blobsToErase = () => Promise.reject(new StoreUnavailableError('it is gone'));
  await assert.rejects(fresh.sweep.run());
  assert.equal(await read(fresh, 'undertone_sweeps_total{outcome="failed"}'), 1);
});
