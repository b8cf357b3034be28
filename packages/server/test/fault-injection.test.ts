// Fault injection: each of these faults once stopped the whole service or lost data.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { Classifier, WorkerFailedError } from '@undertone/classifier';
import { API_KEY_HEADER, type InitiateResult, PATHS } from '@undertone/contract';
import { postFile, readProblem, sharedClassifier, type TestApp, testApp } from '@undertone/testing/app';
import { AsynchClient, filesOf, putPart } from '@undertone/testing/asynch-client';
import { TEST_MODELS } from '@undertone/testing/paths';
import { problemOf } from '@undertone/testing/problem';
import { MUST_MOUNT, mountSmallDisk } from '@undertone/testing/small-disk';
import { SHORT_TIMEOUT_MS } from '@undertone/testing/timeouts';
import { longWav, wav } from '@undertone/testing/wav';
import { Authenticator } from '../src/http/authenticator.ts';
import { createLogger, DATABASE_FILE, readSettings } from '../src/index.ts';
import { defaultLimits } from '../src/settings.ts';
import type { KeyLookup } from '../src/stores/contracts.ts';
import { StoreUnavailableError } from '../src/stores/errors.ts';

const file = wav({ seconds: 6, rate: 16_000 });
const QUICK = {
  leaseMs: 400,
  renewEveryMs: 100,
  pollMs: 50,
  pauseMs: 50,
  stopMs: 500,
  attemptDelaysMs: [20, 20],
  postponeMs: 20,
};

// Started here, so that its threads do not belong to the first test.
await sharedClassifier();

/** Another program that holds the write lock of the database. */
function lock({ dataDir }: TestApp): DatabaseSync {
  const other = new DatabaseSync(join(dataDir, DATABASE_FILE));
  after(() => other.isOpen && other.close());
  other.exec('BEGIN IMMEDIATE');
  return other;
}

async function timed<T>(work: () => Promise<T>): Promise<{ value: T; ms: number }> {
  const start = performance.now();
  const value = await work();
  return { value, ms: performance.now() - start };
}

/** Why a store cannot be written, as `/readyz` reports it. Traffic is still wanted. */
async function reasonOf(url: string): Promise<string> {
  const response = await fetch(url + PATHS.ready);
  assert.equal(response.status, 200);
  const { stores } = (await response.json()) as { stores: Record<string, { reason?: string }> };
  return Object.values(stores)
    .map(({ reason = '' }) => reason)
    .join('');
}

async function untilState(service: TestApp, id: string, state: string): Promise<void> {
  while ((await service.stores.requests.find(id))?.state !== state) await sleep(10);
}

describe('while another program locks the database', () => {
  test('short recordings and reads work, writes are 503 in time; then everything recovers', async () => {
    const service = await testApp({}, { workerTimes: QUICK, answerMs: SHORT_TIMEOUT_MS, storeCheckMs: 0 });
    const client = await AsynchClient.of(service);
    const { url } = await service.listen();
    const upload = await client.send(file, 1);
    const done = await client.upload(file);
    service.services.worker.start();
    const result = await client.result(done);
    const running = await client.upload(longWav(1_800));
    await untilState(service, running, 'processing');
    const other = lock(service);

    const writes = [client.initiate({}), putPart(upload.presigned_urls[0]?.url ?? '', randomBytes(100))];
    const healthMs: number[] = [];
    for (let times = 0; times < 5; times++) {
      assert.equal((await postFile(service, wav())).statusCode, 200);
      assert.equal((await client.prediction(upload.request_id)).status, 202);
      assert.deepEqual(await client.result(done), result);
      const { value: health, ms } = await timed(() => fetch(url + PATHS.health));
      assert.equal(health.status, 200);
      healthMs.push(ms);
    }
    // A lock would delay several of them; a machine that stalls for a moment delays one.
    healthMs.sort((a, b) => a - b);
    assert.ok((healthMs.at(-2) ?? 0) < 250, `health took ${healthMs} ms`);
    for (const write of writes) {
      const { value: answer, ms } = await timed(() => write);
      assert.ok(ms < 2 * SHORT_TIMEOUT_MS, `refused after ${ms} ms`);
      assert.ok(Number(answer.headers.get('retry-after')) >= 1);
      assert.match((await problemOf(answer, 'overloaded')).detail, /database is locked/);
    }
    assert.match(await reasonOf(url), /locked/);
    await service.services.authenticator.recordLastUsed();
    other.exec('ROLLBACK');

    assert.equal((await client.result(running)).emotions.length, 360);
    assert.equal((await client.complete(upload)).status, 200, 'what was acknowledged is still there');
    await client.result(upload.request_id);
    assert.equal(await reasonOf(url), '');
  });

  test('a recording that outlasts its lease is neither failed nor started twice', async () => {
    const service = await testApp({}, { workerTimes: QUICK, answerMs: SHORT_TIMEOUT_MS });
    const client = await AsynchClient.of(service);
    const id = await client.upload(longWav(1_800));
    service.services.worker.start();
    await untilState(service, id, 'processing');
    const other = lock(service);
    await sleep(SHORT_TIMEOUT_MS);
    other.exec('ROLLBACK');
    assert.equal((await client.result(id)).emotions.length, 360);
    const { body } = await service.app.inject({ url: PATHS.metrics });
    assert.match(body, /undertone_asynch_jobs_total\{outcome="completed"\} 1\n/);
  });
});

describe('while the data folder’s disk is full', () => {
  test('short recordings work, writes are 503 with the reason, nothing acknowledged is lost; then everything recovers', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'undertone-full-'));
    const disk = mountSmallDisk(dataDir, 8);
    assert.ok(disk, MUST_MOUNT);
    after(async () => {
      disk.unmount();
      await rm(dataDir, { recursive: true, force: true });
    });
    const service = await testApp({}, { dataDir, workerTimes: QUICK, storeCheckMs: 0 });
    const client = await AsynchClient.of(service);
    const { url } = await service.listen();
    const upload = await client.send(file, 2);
    const begun = (await (await client.initiate({})).json()) as InitiateResult;
    const stored = await filesOf(dataDir);
    disk.fill();

    const { value: refused, ms } = await timed(() =>
      putPart(begun.presigned_urls[0]?.url ?? '', randomBytes(500_000)),
    );
    assert.ok(ms < 2 * SHORT_TIMEOUT_MS, `refused after ${ms} ms`);
    assert.ok(Number(refused.headers.get('retry-after')) >= 1);
    assert.match((await problemOf(refused, 'overloaded')).detail, /disk is full/);
    assert.deepEqual(
      (await filesOf(dataDir)).filter((name) => name !== 'ballast'),
      stored,
      'no half of a part is left',
    );
    // The write-ahead log still has some free space.
    let initiated = await client.initiate({});
    for (let times = 0; times < 2_000 && initiated.status === 200; times++)
      initiated = await client.initiate({});
    assert.match((await problemOf(initiated, 'overloaded')).detail, /disk is full/);
    assert.equal((await postFile(service, wav())).statusCode, 200);
    assert.equal((await client.prediction(upload.request_id)).status, 202);
    assert.equal((await fetch(url + PATHS.health)).status, 200);
    assert.match(await reasonOf(url), /disk is full/);
    await service.services.authenticator.recordLastUsed();
    await service.sweep.run().catch((error) => assert.ok(error instanceof StoreUnavailableError));

    disk.empty();
    service.services.worker.start();
    assert.equal((await client.complete(upload)).status, 200);
    assert.equal((await client.result(upload.request_id)).emotions.length, 2);
    assert.equal(await reasonOf(url), '');
  });
});

describe('while the key store is unavailable', () => {
  const answers: { now: KeyLookup | Error | Promise<never> } = {
    now: { state: 'active', id: 'k1', name: 'laptop', owner: 'k1', limits: {} },
  };
  const lookUp = async () => {
    if (answers.now instanceof Error) throw answers.now;
    return answers.now;
  };
  const clock = { ms: 0 };
  const keys = {
    lookUp,
    recordLastUsed: async () => Promise.reject(new StoreUnavailableError('its disk is full')),
  };
  const authenticator = new Authenticator({
    keys: keys as never,
    environmentKey: '',
    defaultLimits: defaultLimits(readSettings({})),
    logger: createLogger('silent'),
    monotonicMs: () => clock.ms,
  });
  after(() => authenticator.close());

  test('a cached key stays valid for as long as that lasts; an unknown one gets a 503', async () => {
    assert.equal((await authenticator.authenticate('known'))?.id, 'k1');
    answers.now = new StoreUnavailableError('its database is locked');
    clock.ms += 3_600_000;
    assert.equal((await authenticator.authenticate('known'))?.id, 'k1');
    await assert.rejects(authenticator.authenticate('new'), StoreUnavailableError);
    await authenticator.recordLastUsed();

    const hanging = Promise.withResolvers<never>();
    answers.now = hanging.promise;
    clock.ms += 2_000;
    assert.equal(
      (await authenticator.authenticate('known'))?.id,
      'k1',
      'nobody waits for a store that hangs',
    );
    hanging.reject(new StoreUnavailableError('its database answers too slowly'));

    answers.now = { state: 'revoked' };
    clock.ms += 2_000;
    await authenticator.authenticate('known');
    await sleep(1);
    assert.equal(
      await authenticator.authenticate('known'),
      null,
      'and is judged again when the store is back',
    );
  });
});

describe('while no inference thread is alive', () => {
  test('the server is not ready, and a long recording resumes when a thread is back', async () => {
    // Node emits an event for every new thread: this is how the test finds the real one.
    const threads: Worker[] = [];
    const remember = (worker: Worker) => void threads.push(worker);
    process.on('worker', remember);
    const classifier = await Classifier.start({ modelsDir: TEST_MODELS, workers: 1 });
    process.off('worker', remember);
    after(() => classifier.close());
    const service = await testApp({}, { classifier, workerTimes: QUICK });
    const client = await AsynchClient.of(service);
    const expected = await classifier.classifyRecording(asSource(longWav(600)), { stepSeconds: 5 });
    const id = await client.upload(longWav(600));
    service.services.worker.start();
    await untilState(service, id, 'processing');
    threads[0]?.postMessage({ kind: 'nonsense' }); // a message it does not know ends a thread with an error
    while (classifier.stats().alive > 0) await sleep(1);
    readProblem(await service.app.inject({ url: PATHS.ready }), 'overloaded');
    assert.equal((await client.prediction(id)).status, 202);
    const { emotions } = await client.result(id);
    assert.equal(emotions.length, expected.steps.length);
    assert.ok(classifier.stats().restarts >= 1);
  });
});

describe('a recording whose processing throws', () => {
  /** The real classifier, except that the test decides how long recordings end. */
  async function failing(error: () => Error) {
    const real = await sharedClassifier();
    return new Proxy(real, {
      get: (target, name) => {
        if (name === 'classifyRecording') return async () => Promise.reject(error());
        const value = Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }

  test('counts each attempt and fails after the third', async () => {
    const classifier = await failing(() => new WorkerFailedError('the thread was lost twice'));
    const service = await testApp({}, { classifier, workerTimes: QUICK });
    const client = await AsynchClient.of(service);
    const id = await client.upload(file);
    service.services.worker.start();
    const problem = await problemOf(await client.settled(id), 'processing_failed');
    assert.match(problem.detail, /3 times/);
    while ((await filesOf(service.dataDir)).length > 0) await sleep(10);
  });

  test('counts no attempt while the store is unavailable', async () => {
    let times = 0;
    const classifier = await failing(() => {
      times++;
      return new StoreUnavailableError('its disk has errors');
    });
    const service = await testApp({}, { classifier, workerTimes: QUICK });
    const client = await AsynchClient.of(service);
    const id = await client.upload(file);
    service.services.worker.start();
    while (times < 6) await sleep(10);
    assert.equal((await client.prediction(id)).status, 202);
  });
});

describe('two workers on one recording, one of them presumed dead', () => {
  test('the late one loses its lease, stops and changes nothing; neither erases what the other needs', async () => {
    const service = await testApp({}, { workerTimes: QUICK });
    const client = await AsynchClient.of(service);
    const { requests, blobs } = service.stores;
    const id = await client.upload(file);
    const late = await requests.claim({ leaseMs: 1, running: [] });
    assert.ok(late);
    await sleep(20);
    service.services.worker.start();
    const result = await client.result(id);
    assert.equal(await requests.renew(id, late.lease, { leaseMs: 1_000, progress: 0.5 }), false);
    assert.equal(await requests.finish(id, late.lease, { result: '"late"' }), false);
    assert.equal(await requests.requeue(id, late.lease, { countAttempt: true }), false);
    assert.deepEqual(await client.result(id), result);
    while ((await blobs.groups()).length > 0) await sleep(10);
  });

  test('a worker whose request was taken over cancels its work', async () => {
    const classifier = await sharedClassifier();
    const service = await testApp({}, { workerTimes: QUICK });
    const client = await AsynchClient.of(service);
    const id = await client.upload(longWav(1_800));
    service.services.worker.start();
    await untilState(service, id, 'processing');
    const other = new DatabaseSync(join(service.dataDir, DATABASE_FILE));
    other.exec(`UPDATE requests SET lease = 'somebody-else', lease_until = ${Date.now() + 60_000}`);
    other.close();
    while (classifier.stats().busy + classifier.stats().queued.asynch > 0) await sleep(10);
    assert.equal((await service.stores.requests.find(id))?.state, 'processing');
    await client.delete(id);
  });
});

describe('wrong keys', () => {
  test('are limited by address, without affecting valid keys from it', async () => {
    const service = await testApp();
    const ask = (key: string) =>
      service.app.inject({ url: PATHS.models, headers: { [API_KEY_HEADER]: key } });
    for (let times = 0; times < 20; times++) readProblem(await ask(`wrong-${times}`), 'invalid_api_key');
    const refused = await ask('wrong-again');
    assert.ok((readProblem(refused, 'rate_limited').retry_after_seconds ?? 0) >= 1);
    assert.equal((await ask(service.key)).statusCode, 200);
    const bearer = await service.app.inject({
      url: PATHS.models,
      headers: { authorization: `Bearer ${service.key}` },
    });
    assert.equal(bearer.statusCode, 200);
  });

  test('are counted by the address that a trusted proxy names; untrusted proxies are ignored', async () => {
    const service = await testApp({ SERVICE_TRUSTED_PROXIES: '127.0.0.1' });
    const ask = (from: string) =>
      service.app.inject({
        url: PATHS.models,
        headers: { [API_KEY_HEADER]: 'wrong', 'x-forwarded-for': from },
      });
    for (let times = 0; times < 20; times++) await ask('10.1.1.1');
    readProblem(await ask('10.1.1.1'), 'rate_limited');
    readProblem(await ask('10.2.2.2'), 'invalid_api_key');
  });
});

describe('a client that disconnects', () => {
  test('is logged once at info with 499 and counted, without an error', async () => {
    let text = '';
    const logger = createLogger('info', {
      write: (line) => {
        text += line;
      },
    });
    const service = await testApp({}, { logger });
    const { url } = await service.listen();
    const hangUp = new AbortController();
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(new Uint8Array(1000)),
    });
    const sent = fetch(url + PATHS.discrete, {
      method: 'POST',
      headers: { [API_KEY_HEADER]: service.key, 'content-type': 'application/json' },
      body,
      duplex: 'half',
      signal: hangUp.signal,
    } as RequestInit);
    while (!(await metric(service, 'undertone_discrete_requests_in_flight 1'))) await sleep(10);
    hangUp.abort();
    await assert.rejects(sent);
    while (!text.includes('"status":499')) await sleep(10);
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      lines.filter(({ status }) => status === 499).map(({ level, route }) => [level, route]),
      [[30, PATHS.discrete]],
    );
    assert.ok(
      lines.every(({ level, err }) => level < 50 && err === undefined),
      text,
    );
    assert.ok(
      await metric(
        service,
        'undertone_requests_total{method="POST",route="/v1/discrete/emotion",status="499"} 1',
      ),
    );
  });

  async function metric(service: TestApp, line: string): Promise<boolean> {
    const { body } = await service.app.inject({ url: PATHS.metrics });
    return body.includes(line);
  }
});

function asSource(bytes: Uint8Array) {
  return {
    size: bytes.length,
    async *read(start = 0, end = bytes.length) {
      yield bytes.subarray(start, end);
    },
  };
}
