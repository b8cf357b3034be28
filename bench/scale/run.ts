// Several machines, as processes: speed-up with more workers, queue latency, polling, and claims in a full database.
import { Agent, get } from 'node:http';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { API_KEY_HEADER, ASYNCH_PATHS, type InitiateResult, PATHS } from '@undertone/contract';
import { openStores, type Stores } from '@undertone/server';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { type ServerProcess, startServerProcess } from '@undertone/testing/server-process';
import { SharedStores } from '@undertone/testing/shared-stores';
import { longWav } from '@undertone/testing/wav';
import pg from 'pg';
import { LEASE_MS } from '../../packages/server/src/recordings/worker.ts';
import { describeMachine, Limits, median, rounded } from '../support/report.ts';

const LIMITS = { twoWorkers: 1.9, fourWorkers: 3.6, queueMs: 100, pollP99Ms: 50, claimRatio: 1.5 };
const WINDOW_SECONDS = 5;
const QUEUE_SAMPLES = 20;
const CLAIMS = 200;

const { values } = parseArgs({
  options: {
    /** Milliseconds the waiting model takes for each window. */
    wait: { type: 'string', default: '100' },
    /** Recordings in each run, and windows in each recording. */
    recordings: { type: 'string', default: '8' },
    windows: { type: 'string', default: '40' },
    /** Polls per second, and for how many seconds. */
    polls: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '15' },
    /** Past requests in the database. */
    rows: { type: 'string', default: '1000000' },
  },
});
const option = (name: keyof typeof values) => Number(values[name]);
const WAITING = {
  NODE_OPTIONS: `--import=${new URL('./waiting-model.ts', import.meta.url).href}`,
  BENCH_WAIT_MS: values.wait,
};

const limits = new Limits();
console.log(
  `${describeMachine()}\nPostgreSQL and SeaweedFS on the same machine, workers with one inference thread each\n`,
);
const stores = await SharedStores.start();
const database = new pg.Client({ connectionString: stores.databaseUrl });
try {
  const api = await startServerProcess({ ...stores.env, SERVICE_ROLE: 'api', SERVICE_WORKERS: '1' });
  await database.connect();
  try {
    await ratios(
      api,
      `model that waits ${values.wait} ms per window instead of computing (only in this bench)`,
      WAITING,
    );
    await ratios(api, 'real model, which cannot use more workers than cores (no limit)');
    await queueWait(api);
    await polling(api);
  } finally {
    await database.end();
    await api.stop();
  }
  await fullDatabase();
} finally {
  await stores.stop();
}
limits.conclude();

async function withWorkers<T>(
  count: number,
  env: Record<string, string>,
  work: () => Promise<T>,
): Promise<T> {
  const one = {
    ...stores.env,
    SERVICE_ROLE: 'worker',
    SERVICE_WORKERS: '1',
    SERVICE_ASYNCH_JOBS: '1',
    ...env,
  };
  const workers = await Promise.all(Array.from({ length: count }, () => startServerProcess(one)));
  try {
    return await work();
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
  }
}

async function ratios(api: ServerProcess, model: string, env: Record<string, string> = {}): Promise<void> {
  const seconds: number[] = [];
  for (const count of [1, 2, 4]) seconds.push(await withWorkers(count, env, () => allDone(api)));
  const [one = 0, two = 0, four = 0] = seconds;
  const words = `1 worker ${rounded(one)} s, 2 workers ${rounded(one / two)} times as fast, 4 workers ${rounded(one / four)} times`;
  console.log(`${values.recordings} recordings of ${values.windows} windows, ${model}: ${words}.`);
  if (env !== WAITING) return;
  limits.atLeast('2 workers', one / two, LIMITS.twoWorkers, ' times one');
  limits.atLeast('4 workers', one / four, LIMITS.fourWorkers, ' times one');
}

/** Seconds from completing the uploads to the last finished recording. */
async function allDone(api: ServerProcess): Promise<number> {
  const client = new AsynchClient(api.url, api.key);
  const recording = longWav(option('windows') * WINDOW_SECONDS);
  const uploads = [];
  for (let i = 0; i < option('recordings'); i++) uploads.push(await client.send(recording, 1));
  const start = performance.now();
  await Promise.all(uploads.map((upload) => client.complete(upload)));
  const unfinished = `SELECT 1 FROM undertone.requests WHERE state IN ('queued', 'processing')`;
  while ((await database.query(unfinished)).rowCount !== 0) await sleep(20);
  return (performance.now() - start) / 1000;
}

/** From queueing to claim, by the database's clock. */
async function queueWait(api: ServerProcess): Promise<void> {
  const client = new AsynchClient(api.url, api.key);
  const waits = await withWorkers(1, WAITING, async () => {
    const seen: number[] = [];
    for (let i = 0; i < QUEUE_SAMPLES; i++) {
      const id = await client.upload(longWav(4 * WINDOW_SECONDS));
      const claimed = `SELECT lease_until - ${LEASE_MS} - queued_at AS ms FROM undertone.requests WHERE id = '${id}' AND lease IS NOT NULL`;
      for (let found = []; found.length === 0; await sleep(5)) {
        found = (await database.query(claimed)).rows;
        if (found[0]) seen.push(Number(found[0].ms));
      }
      await client.result(id);
    }
    return seen;
  });
  const longest = Math.max(...waits);
  console.log(
    `Queue latency with an idle worker: median ${median(waits)} ms, maximum ${longest} ms of ${waits.length}.`,
  );
  limits.atMost('queue latency with an idle worker', longest, LIMITS.queueMs, ' ms');
}

/** Polls at a constant rate, whether or not the answers keep up. */
async function polling(api: ServerProcess): Promise<void> {
  const client = new AsynchClient(api.url, api.key);
  const { request_id } = (await (await client.initiate({})).json()) as InitiateResult;
  const path = `${PATHS.asynch}${ASYNCH_PATHS.prediction}?request_id=${request_id}`;
  const agent = new Agent({ keepAlive: true });
  const ask = () =>
    new Promise<number>((resolve, reject) => {
      const start = performance.now();
      get(api.url + path, { agent, headers: { [API_KEY_HEADER]: api.key } }, (response) => {
        if (response.statusCode !== 202) limits.miss(`a poll got ${response.statusCode}`);
        response.resume().once('end', () => resolve(performance.now() - start));
      }).once('error', reject);
    });
  for (let i = 0; i < 50; i++) await ask(); // warm-up
  const count = option('polls') * option('seconds');
  const asked: Promise<number>[] = [];
  for (const start = performance.now(); asked.length < count; await sleep(2)) {
    const due = Math.min(count, ((performance.now() - start) * option('polls')) / 1000);
    while (asked.length < due) asked.push(ask());
  }
  const times = (await Promise.all(asked)).toSorted((a, b) => a - b);
  agent.destroy();
  const p99 = times[Math.ceil(times.length * 0.99) - 1] ?? Number.NaN;
  console.log(
    `${values.polls} polls per second at one API process: median ${rounded(median(times))} ms, p99 ${rounded(p99)} ms.`,
  );
  limits.atMost('p99 of polling', p99, LIMITS.pollP99Ms, ' ms');
}

async function fullDatabase(): Promise<void> {
  const url = await stores.cluster.newDatabase();
  const { requests, close } = await openStores({ dataDir: tmpdir(), databaseUrl: url }, { kind: 'local' });
  try {
    await claimMs(requests, 'warm-up');
    const empty = await claimMs(requests, 'empty');
    await stores.cluster.query(
      `INSERT INTO undertone.requests
         (id, owner, upload_id, model, interval_seconds, part_count, state, progress, created_at, expires_at)
       SELECT 'past-' || n, 'owner-' || n % 100, '', '4emotions', 5, 1,
         (ARRAY['completed', 'failed', 'expired', 'deleted'])[1 + n % 4], 1, now, now + 86400000
       FROM generate_series(1, ${option('rows')}) AS n,
         (SELECT (extract(epoch FROM now()) * 1000)::bigint AS now) AS time`,
      url,
    );
    await stores.cluster.query('VACUUM ANALYZE undertone.requests', url);
    const full = await claimMs(requests, 'full');
    const ratio = full / empty;
    console.log(
      `A claim takes ${rounded(empty)} ms, and ${rounded(full)} ms with ${values.rows} past requests: ${rounded(ratio)} times.`,
    );
    limits.atMost('a claim in a full database', ratio, LIMITS.claimRatio, ' times that in an empty one');
  } finally {
    await close();
  }
}

async function claimMs(requests: Stores['requests'], name: string): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < CLAIMS; i++) {
    const id = `${name}-${i}`;
    const upload = { uploadId: 'u', model: '4emotions', intervalSeconds: 5, partCount: 1 };
    await requests.create({ id, owner: 'bench', ...upload });
    const part = { number: 1, blob: '1', etag: 'e', bytes: 1 };
    await requests.addPart(id, part, { maxRequestBytes: 1, maxOwnerBytes: CLAIMS });
    await requests.complete(id, new Map([[1, 'e']]));
  }
  for (let i = 0; i < CLAIMS; i++) {
    const start = performance.now();
    const claim = await requests.claim({ leaseMs: 60_000, running: [] });
    times.push(performance.now() - start);
    await requests.finish(claim?.request.id ?? '', claim?.lease ?? '', { result: '{}' });
    await requests.noteErased([claim?.request.id ?? '']);
  }
  return median(times);
}
