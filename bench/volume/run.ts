// Much volume: many expired requests are swept, a key with many open uploads is revoked, and the longest recording has the most
// predictions, while others poll. See ../README.md.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { DATABASE_FILE, openStores, type Stores } from '@undertone/server';
import { PostgresCluster } from '@undertone/testing/postgres-cluster';
import { describeMachine, Limits, median, percentile, rounded } from '../support/report.ts';
import { classifyLongest } from './longest.ts';

const LIMITS = { sweepSeconds: 300, pollP99Ms: { PostgreSQL: 50, SQLite: 500 }, revokedMs: 1_000 };
const POLL_EVERY_MS = 5;

const { values } = parseArgs({
  options: {
    /** Expired requests, each with a result of this many characters. */
    expired: { type: 'string', default: '100000' },
    characters: { type: 'string', default: '4000' },
    /** Open uploads of one key. */
    uploads: { type: 'string', default: '60000' },
    /** Hours of the longest recording, with a prediction every second. */
    hours: { type: 'string', default: '48' },
    postgres: { type: 'boolean', default: false },
  },
});
const name = values.postgres ? 'PostgreSQL' : 'SQLite';
const limits = new Limits();
console.log(`${describeMachine()}\n${name}\n`);

const dataDir = await mkdtemp(join(tmpdir(), 'undertone-volume-'));
const cluster = values.postgres ? await PostgresCluster.start() : undefined;
const databaseUrl = (await cluster?.newDatabase()) ?? '';
try {
  await using opened = new AsyncDisposableStack();
  const stores = await openStores({ dataDir, databaseUrl }, { kind: 'thread' });
  opened.defer(() => stores.close());
  await sweep(stores);
  await revoke(stores);
  await classifyLongest({ dataDir, databaseUrl, hours: Number(values.hours), limits });
} finally {
  await cluster?.remove();
  await rm(dataDir, { recursive: true });
}
limits.conclude();

async function sweep({ requests }: Stores): Promise<void> {
  await insert(Number(values.expired), 'completed', 'past', -1_000);
  await fill(
    `INSERT INTO results (request_id, result) SELECT id, '${'x'.repeat(Number(values.characters))}' FROM requests`,
  );
  const start = performance.now();
  const polled = await pollDuring(requests, async () => {
    while ((await requests.expire()).more);
  });
  const seconds = (performance.now() - start) / 1000;
  const { expired = 0 } = await requests.countByState();
  console.log(`${expired} requests expired in ${rounded(seconds)} s; ${polled.text}.`);
  limits.atLeast('expired requests', expired, Number(values.expired));
  limits.atMost('the sweep', seconds, LIMITS.sweepSeconds, ' s');
  limits.atMost('p99 of polling during the sweep', polled.p99, LIMITS.pollP99Ms[name], ' ms');
}

async function revoke({ requests, keys }: Stores): Promise<void> {
  const { key, record } = await keys.create('busy');
  await insert(Number(values.uploads), 'uploading', record.id, 86_400_000);
  const start = performance.now();
  const revoking = keys.revoke(record.id);
  while ((await keys.lookUp(key)).state === 'active') await sleep(1);
  const refusedMs = performance.now() - start;
  await revoking;
  const { uploading = 0 } = await requests.countByState();
  console.log(
    `A key with ${values.uploads} open uploads is refused after ${rounded(refusedMs)} ms; they are deleted after ${rounded((performance.now() - start) / 1000)} s.`,
  );
  limits.atMost('a revoked key is refused', refusedMs, LIMITS.revokedMs, ' ms');
  limits.atMost('open uploads of a revoked key', uploading, 0);
}

/** Looks a request up every few milliseconds, as callers do who poll. */
async function pollDuring(
  requests: Stores['requests'],
  work: () => Promise<void>,
): Promise<{ p99: number; text: string }> {
  const times: number[] = [];
  let running = true;
  const done = work().finally(() => {
    running = false;
  });
  while (running) {
    const start = performance.now();
    await requests.find('past-1');
    times.push(performance.now() - start);
    await sleep(POLL_EVERY_MS);
  }
  await done;
  const p99 = percentile(times, 0.99);
  const longest = Math.max(...times);
  return {
    p99,
    text: `polling: median ${rounded(median(times))} ms, p99 ${rounded(p99)} ms, longest ${rounded(longest)} ms`,
  };
}

async function insert(count: number, state: string, owner: string, expiresInMs: number): Promise<void> {
  const now = Date.now();
  // The audio of completed requests was erased long ago.
  const blobsDue = state === 'completed' ? 'NULL' : now + expiresInMs;
  await fill(
    `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})
     INSERT INTO requests (id, owner, upload_id, model, interval_seconds, part_count, state, created_at, expires_at, blobs_due)
     SELECT '${owner}-' || n, '${owner}', 'u', '4emotions', 5, 1, '${state}', ${now} - n, ${now + expiresInMs}, ${blobsDue} FROM numbers`,
  );
}

/** Straight into the database: a million calls would take longer than what is measured. */
async function fill(sql: string): Promise<void> {
  if (cluster !== undefined) {
    await cluster.query(`SET search_path = undertone; ${sql}; ANALYZE`, databaseUrl);
    return;
  }
  const database = new DatabaseSync(join(dataDir, DATABASE_FILE), { timeout: 5_000 });
  database.exec(sql);
  database.close();
}
