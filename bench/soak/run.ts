// An hour of ordinary load: nothing grows, nothing fails, no alert fires. See ../README.md.
import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { PATHS } from '@undertone/contract';
import { ServerProcess } from '@undertone/testing/server-process';
import { SharedStores } from '@undertone/testing/shared-stores';
import { checkHealth, type Health, watchHealth } from '../support/health.ts';
import { describeMachine, Limits, rounded } from '../support/report.ts';
import { checkGrowth, type Sample, tableOf } from './figures.ts';
import { KeyTurns } from './keys.ts';
import { startLoad } from './load.ts';
import { Prometheus } from './prometheus.ts';
import { Sampler, serverErrors } from './sampler.ts';
import { SoakStores } from './stores.ts';
import type { Lap } from './tally.ts';

const SAMPLE_SECONDS = 60;
const LOOK_SECONDS = 15;
/** Three in each of the six periods, in short runs too. */
const LEAST_SAMPLES = 18;
const KEY_SECONDS = 65;
/** Everything is gone at twice this age, before the second sixth of an hour. */
const EXPIRE_SECONDS = 240;
const LEAST_EXPIRE_SECONDS = 60;
/** A shorter run ends before the server is warm and the sweep has caught up. */
const GROWTH_MINUTES = 30;
const ERROR_LEVEL = 50;

const { values } = parseArgs({
  options: {
    hours: { type: 'string', default: '1' },
    /** Instead of hours, to try it. */
    minutes: { type: 'string' },
    /** Each sample as a line of JSON. */
    output: { type: 'string' },
    /** Give both or neither. */
    postgres: { type: 'boolean', default: false },
    s3: { type: 'boolean', default: false },
    /** The program: it runs with the shipped rules, and no alert may fire. */
    prometheus: { type: 'string' },
  },
});
if (values.postgres !== values.s3) throw new Error('Give --postgres and --s3, or neither.');
const seconds = 60 * (values.minutes === undefined ? 60 * Number(values.hours) : Number(values.minutes));
const sampleSeconds = Math.min(SAMPLE_SECONDS, seconds / LEAST_SAMPLES);
const lookSeconds = Math.min(LOOK_SECONDS, sampleSeconds / 2);
const expireMs = 1_000 * Math.max(LEAST_EXPIRE_SECONDS, Math.min(EXPIRE_SECONDS, seconds / 15));

const limits = new Limits();
console.log(`${describeMachine()}\n`);
await using opened = new AsyncDisposableStack();
const shared = values.postgres ? await SharedStores.start() : undefined;
opened.defer(async () => shared?.stop());
const dataDir = await mkdtemp(join(tmpdir(), 'undertone-soak-'));
opened.defer(() => rm(dataDir, { recursive: true, force: true }));
const server = new ServerProcess(dataDir, {
  ...shared?.env,
  SERVICE_WEBHOOK_PRIVATE: 'true',
  SERVICE_LOG_LEVEL: 'info',
});
const log = { lines: 0, errors: 0, expired: 0, erased: 0 };
server.onLine = readLine;
await server.start();
opened.defer(() => server.end('SIGTERM'));
const stores = await SoakStores.open(dataDir, shared);
opened.defer(() => stores.close());
const prometheus =
  values.prometheus === undefined ? undefined : await Prometheus.start(values.prometheus, server.url);
opened.defer(async () => prometheus?.stop());
const keys = new KeyTurns(server.url, stores.keys);
const health = watchHealth(server.url);
const load = await startLoad(server.url, server.key);
console.log(
  `The server classifies ${rounded(load.capacity)} windows of 5 s per second; half of it is used for ${rounded(seconds / 60)} minutes.`,
);

const total = { counts: {} as Record<string, number>, failed: 0, megabytes: 0 };
const healthTotal = { asked: 0, failed: 0, slowestMs: 0 };
const samples = await watch();
addLap(await load.stop());
addHealth(await health.stop());
await report();
limits.conclude();

/** Looks often, keeps a sample of each minute. */
async function watch(): Promise<Sample[]> {
  const taken: Sample[] = [];
  const sampler = new Sampler(server);
  await sampler.take();
  await Promise.all([load.lap(), health.lap()]);
  if (values.output !== undefined) await writeFile(values.output, '');
  const start = performance.now();
  let nextKey = 0;
  for (let look = 1; ; look++) {
    await sleep(Math.max(0, start + 1_000 * lookSeconds * look - performance.now()));
    const now = (performance.now() - start) / 1_000;
    if (!server.isAlive) throw new Error('the server has ended');
    await sampler.look();
    await stores.age(expireMs);
    if (now >= nextKey) {
      const wrong = await keys.next();
      if (wrong !== null) limits.miss(wrong);
      nextKey = now + KEY_SECONDS;
    }
    if (now < sampleSeconds * (taken.length + 1)) continue;
    const sample = await takeSample(sampler, now);
    taken.push(sample);
    if (values.output !== undefined) await appendFile(values.output, `${JSON.stringify(sample)}\n`);
    if (now >= seconds) return taken;
  }
}

async function takeSample(sampler: Sampler, now: number): Promise<Sample> {
  const [figures, lap, healthLap, database, recordings] = await Promise.all([
    sampler.take(),
    load.lap(),
    health.lap(),
    stores.databaseMegabytes(),
    stores.recordingsMegabytes(),
  ]);
  addLap(lap);
  addHealth(healthLap);
  const sample = {
    seconds: Math.round(now),
    ...figures,
    database,
    recordings,
    health: healthLap.slowestMs,
    clips: lap.counts['clips'] ?? 0,
    clipMedian: lap.clipMedianMs,
    clipP99: lap.clipP99Ms,
  };
  return sample as Sample;
}

function addLap({ counts, failed, failures, megabytes }: Lap): void {
  for (const [what, count] of Object.entries(counts)) total.counts[what] = (total.counts[what] ?? 0) + count;
  total.failed += failed;
  total.megabytes = Math.max(total.megabytes, megabytes);
  for (const failure of failures) limits.miss(failure);
}

function addHealth({ asked, failed, slowestMs }: Health): void {
  healthTotal.asked += asked;
  healthTotal.failed += failed;
  healthTotal.slowestMs = Math.max(healthTotal.slowestMs, slowestMs);
}

function readLine(line: string): void {
  log.lines++;
  if (!line.startsWith('{')) return;
  const { level, msg, expired = 0, erased = 0 } = JSON.parse(line);
  if (level >= ERROR_LEVEL) {
    log.errors++;
    limits.miss(`the log says: ${line}`);
  }
  if (msg === 'swept') {
    log.expired += expired;
    log.erased += erased;
  }
}

async function report(): Promise<void> {
  const cores = samples.reduce((sum, sample) => sum + (sample.cores ?? 0), 0) / samples.length;
  console.log(`\n${tableOf(samples)}\n`);
  const metrics = await (await fetch(server.url + PATHS.metrics)).text();
  console.log(`Done: ${JSON.stringify(total.counts)}, ${keys.turns} keys created and revoked.`);
  console.log(
    `The server used ${rounded(cores)} of ${availableParallelism()} cores, the clients at most ${rounded(total.megabytes)} MB. The sweep expired ${log.expired} requests and erased ${log.erased} recordings. ${log.lines} lines of log, ${log.errors} errors. /metrics has ${rounded(metrics.length / 1_000)} kB.`,
  );
  limits.atMost('failures of clients', total.failed, 0);
  for (const what of ['clips', 'recordings', 'streams']) {
    limits.atLeast(what, total.counts[what] ?? 0, 1);
  }
  for (const line of serverErrors(metrics)) limits.miss(line);
  limits.atLeast('requests that the sweep expired', log.expired, 1);
  checkHealth(limits, 'under load', healthTotal);
  if (seconds >= 60 * GROWTH_MINUTES) checkGrowth(limits, samples);
  else console.log(`Growth is checked in runs of ${GROWTH_MINUTES} minutes or more.`);
  if (prometheus === undefined) console.log('No --prometheus: alerts are not checked.');
  else await checkAlerts(prometheus);
}

async function checkAlerts(running: Prometheus): Promise<void> {
  const { fired, pending, evaluated, shipped, scrapes } = await running.alerts();
  console.log(
    `Prometheus evaluated ${evaluated} of ${shipped} alerts in ${scrapes} scrapes: ${fired.length} fired; pending for a moment: ${pending.join(', ') || 'none'}.`,
  );
  for (const alert of fired) limits.miss(`the alert ${alert} fired`);
  limits.atLeast('alerts that were evaluated', evaluated, shipped);
  limits.atLeast('successful scrapes', scrapes, Math.floor((0.9 * seconds) / LOOK_SECONDS));
}
