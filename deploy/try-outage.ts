// PostgreSQL and S3 fail, and then the processes themselves, behind haproxy and under the eyes of prometheus: what callers see, which
// alerts fire and when, and that nothing acknowledged is lost. acceptance.sh runs it.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WebhookEvent } from '@undertone/sdk';
import { Receiver } from '@undertone/testing/webhook-receiver';
import pg from 'pg';
import { Cluster } from './drill/cluster.ts';
import { ALERT_NAMES, Prometheus } from './drill/prometheus.ts';
import { starve } from './drill/starve.ts';
import { type Call, describeCalls, type Kind, Traffic } from './drill/traffic.ts';

/** A minute of outage stands for five. */
const SPEED = 5;
/** For the alerts on processes, which wait longer than those on stores. */
const FAST = 30;
/** An alert on a store must fire within two minutes. The servers check their stores every 10 s, whatever the speed. */
const ALERT_WITHIN_MS = 120_000 / SPEED + 10_000 * (1 - 1 / SPEED);
const PROCESS_ALERT_WITHIN_MS = 150_000;
/** After an outage calls work again within this time. */
const RECOVERED_WITHIN_MS = 4_000;

interface Outage {
  readonly what: string;
  readonly needs: readonly Kind[];
  readonly from: number;
  readonly to: number;
}

const cluster = await Cluster.start(2);
const receiver = await Receiver.start(() => 204);
const prometheus = await Prometheus.start(cluster.folder, [SPEED, FAST]);
const traffic = new Traffic(cluster.proxy.url, cluster.key, receiver.url);
const outages: Outage[] = [];
/** Alerts that were seen to fire because of a fault made here. */
const caused = new Set<string>();
const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;

/** Breaks a store for a while, at least until its alert fires, and waits until all calls work again. */
async function tryOutage(
  what: string,
  { store, lastMs, needs }: { store: string; lastMs: number; needs: readonly Kind[] },
  breakIt: () => unknown,
  repair: () => unknown,
): Promise<void> {
  await traffic.sendAhead(5);
  const from = performance.now();
  await breakIt();
  const broken = performance.now();
  const firedAt = await prometheus.untilFiring(SPEED, 'UndertoneStoreDown', store, ALERT_WITHIN_MS);
  caused.add('UndertoneStoreDown');
  await sleep(Math.max(0, broken + lastMs - performance.now()));
  await repair();
  const to = performance.now();
  const during = traffic.calls.filter(({ at }) => at > broken && at < to);
  outages.push({ what, needs, from, to });
  console.log(`\n${what} for ${seconds(to - broken)}`);
  console.log(describeCalls(during));
  console.log(
    `  UndertoneStoreDown ${store} fires after ${seconds(firedAt - broken)} (${SPEED} times as fast)`,
  );
  for (const kind of needs)
    assert.ok(
      during.some((call) => call.kind === kind && call.status === 503),
      kind,
    );
  const later = traffic.calls.length;
  await sleep(RECOVERED_WITHIN_MS);
  const failures = traffic.calls.slice(later).filter(({ status }) => status >= 400 || status === 0);
  const lastFailure = Math.max(to, ...failures.map(({ at, ms }) => at + ms));
  console.log(`  the last refused call ends ${seconds(lastFailure - to)} after the repair`);
}

/** Every answer is either good, or a 503 that says why and when to try again, and only while a store that the call needs is unavailable. */
function checkCall({ kind, at, ms, status, code, retryAfter }: Call): void {
  if (status === 200 || status === 202) return;
  const excuse = outages.find(
    ({ needs, from, to }) => needs.includes(kind) && at + ms > from && at < to + RECOVERED_WITHIN_MS,
  );
  const about = `${kind} got ${status} ${code} after ${Math.round(ms)} ms`;
  assert.ok(excuse, `${about} without an outage`);
  // A part that could not be sent to S3 is missing once S3 is back.
  if (status === 400 && kind === 'complete' && excuse.what.startsWith('S3')) return;
  assert.deepEqual([status, code], [503, 'overloaded'], `${about} during: ${excuse.what}`);
  assert.ok(Number(retryAfter) > 0, about);
}

async function tryStores(): Promise<void> {
  const { cluster: postgres, s3 } = cluster.stores;
  const database = { store: 'database', needs: ['poll', 'one call', 'initiate', 'complete'] as const };
  await tryOutage(
    'PostgreSQL hangs (SIGSTOP)',
    { ...database, lastMs: 30_000 },
    () => postgres.pause(),
    () => postgres.resume(),
  );
  await tryOutage(
    'S3 is gone',
    { store: 'recordings', needs: ['one call', 'complete'], lastMs: 60_000 },
    () => s3.stopServer(),
    () => s3.startServer(),
  );
  await tryOutage(
    'PostgreSQL is stopped',
    { ...database, lastMs: 30_000 },
    () => postgres.stopServer(),
    () => postgres.startServer(),
  );
  for (const call of traffic.calls) checkCall(call);
  const shorts = traffic.calls.filter(({ kind }) => kind === 'short');
  console.log(`\nAll ${shorts.length} short recordings were answered with 200, in every outage.`);
}

/** A completion refused while PostgreSQL did not answer must not happen later. */
async function checkRefused(): Promise<void> {
  const databaseOutages = outages.filter(({ needs }) => needs.includes('poll'));
  const refused = [...traffic.refused].filter(([, at]) =>
    databaseOutages.some(({ from, to }) => at > from && at < to - 1_000),
  );
  for (const [id] of refused) assert.equal(await traffic.stateOf(id), 'uploading', id);
  assert.ok(refused.length > 4);
  console.log(`${refused.length} uploads whose completion was refused during an outage are still open.`);
}

/** Every acknowledged recording is completed and its webhook accepted. */
async function checkNothingLost(): Promise<void> {
  const start = performance.now();
  const notified = () =>
    new Set(receiver.received.map(({ body }) => (JSON.parse(body) as WebhookEvent).data.request_id));
  for (const id of traffic.acknowledged) {
    let state = await traffic.stateOf(id);
    for (; state === 'queued' || state === 'processing'; state = await traffic.stateOf(id)) await sleep(200);
    assert.equal(state, 'completed', id);
  }
  while (![...traffic.acknowledged].every((id) => notified().has(id))) {
    assert.ok(performance.now() - start < 120_000, 'webhooks are missing');
    await sleep(200);
  }
  const extra = [...notified()].filter((id) => !traffic.acknowledged.has(id));
  console.log(
    `${traffic.acknowledged.size} recordings were acknowledged; all are completed, with their webhooks (${extra.length} others).`,
  );
}

async function inDatabase(sql: string, values: unknown[] = []): Promise<void> {
  const client = new pg.Client(cluster.stores.databaseUrl);
  await client.connect();
  await client.query(sql, values).finally(() => client.end());
}

/** As if they had been sent that many hours earlier. */
function makeOlder(ids: readonly string[], hours: number): Promise<void> {
  return inDatabase(
    'UPDATE undertone.requests SET created_at = created_at - $1, expires_at = expires_at - $1 WHERE id = ANY($2)',
    [hours * 3_600_000, ids],
  );
}

async function fires(alert: string): Promise<void> {
  await prometheus.untilFiring(FAST, alert, '', PROCESS_ALERT_WITHIN_MS);
  caused.add(alert);
  console.log(`  ${alert} fires`);
}

try {
  const started = Promise.all([
    Promise.all([cluster.startApi(0), cluster.startApi(1)]),
    Promise.all([cluster.startWorker(), cluster.startWorker()]),
  ]);
  console.log(`\nNothing is scraped yet (${FAST} times as fast)`);
  await fires('UndertoneAbsent');
  const [apis, workers] = await started;
  const processes = [...apis, ...workers];
  await prometheus.scrape(processes);
  await cluster.proxy.untilUp(0, 1);

  console.log('\nDamaged recordings, then an ordinary time');
  await traffic.sendDamaged(30);
  await fires('UndertoneRecordingsFail');
  await traffic.start();
  await sleep(4_000);
  console.log(describeCalls(traffic.calls));
  assert.deepEqual(new Set(prometheus.firing(SPEED)), new Set(['UndertoneRecordingsFail']));

  await tryStores();
  for (const alert of ['UndertoneStoreSlow', 'UndertoneUnavailable']) {
    assert.ok(prometheus.fired.has(alert), alert);
    caused.add(alert);
  }
  await checkRefused();

  console.log(
    '\nBoth workers are killed; of two more API processes, one gets hardly any CPU time and one is stopping',
  );
  await Promise.all(workers.map((worker) => worker.end('SIGKILL')));
  const [starved, stopping] = await Promise.all([cluster.startApi(), cluster.startApi()]);
  await prometheus.scrape([...processes, starved, stopping]);
  const release = starve(starved);
  for (const alert of ['UndertoneDown', 'UndertoneNoWorker']) await fires(alert);
  const stopped = stopping.end('SIGTERM');
  for (const alert of ['UndertoneNotReady', 'UndertoneEventLoopSlow', 'UndertoneQueueStands'])
    await fires(alert);
  release();
  await stopped;

  console.log('\nStill no worker: many recordings wait, some of them for hours');
  const [waiting = '', ...forgotten] = await traffic.sendMore(100);
  await makeOlder([waiting], 7);
  await makeOlder(forgotten.slice(0, 3), 24);
  for (const id of forgotten.slice(0, 3)) traffic.acknowledged.delete(id);
  for (const alert of ['UndertoneQueueOld', 'UndertoneExpiredUnprocessed', 'UndertoneQueueLong'])
    await fires(alert);
  await traffic.stop();
  const restarted = await Promise.all([cluster.startWorker(), cluster.startWorker()]);
  await checkNothingLost();

  console.log('\n1,010 webhooks to a program that does not run');
  await prometheus.scrape([...apis, starved, ...restarted]);
  await traffic.sendDamaged(1_010, { webhook_url: 'http://127.0.0.1:1/' });
  await fires('UndertoneWebhooksWait');

  console.log('\nThe table of the results is gone');
  await inDatabase('ALTER TABLE undertone.results RENAME TO results_elsewhere');
  assert.deepEqual(await traffic.pollDuring(fires('UndertoneErrors')), new Set([500]));
  await inDatabase('ALTER TABLE undertone.results_elsewhere RENAME TO results');

  console.log('\nAll API processes are killed');
  await Promise.all([...apis, starved].map((api) => api.end('SIGKILL')));
  await fires('UndertoneNoApi');

  const [real, tested] = [true, false].map((is) => ALERT_NAMES.filter((name) => caused.has(name) === is));
  console.log(`\nFired by a fault: ${real?.join(', ')}.\nOnly in promtool's tests: ${tested?.join(', ')}.`);
} finally {
  await traffic.stop();
  await prometheus.stop();
  await receiver.stop();
  await cluster.stop();
}
