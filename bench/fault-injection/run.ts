// Long outages of the store against the real server: another program locks the database, the disk of the data folder is
// full, PostgreSQL hangs while the server is stopped. Needs root to mount a small disk. See ../README.md.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { PATHS } from '@undertone/contract';
import { DATABASE_FILE } from '@undertone/server';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { ServerProcess } from '@undertone/testing/server-process';
import { mountSmallDisk } from '@undertone/testing/small-disk';
import { longWav } from '@undertone/testing/wav';
import { Client } from '../support/client.ts';
import { checkHealth, watchHealth } from '../support/health.ts';
import { describeMachine, Limits } from '../support/report.ts';
import { clipForm } from '../support/voice.ts';
import { stopWhileHanging } from './stop-while-hanging.ts';

const WRITE_LIMIT_MS = 1_000;
const DISK_MEGABYTES = 24;
const limits = new Limits();
const { values } = parseArgs({ options: { seconds: { type: 'string', default: '80' } } });
const seconds = Number(values.seconds);

/** Makes the store unavailable: `persist` keeps it so, `end` repairs it. */
interface Outage {
  persist(): void;
  end(): void;
}

console.log(`${describeMachine()}\n`);
await inTemporaryFolder((dataDir) =>
  survive('the database is locked', dataDir, /locked/, () => {
    const other = new DatabaseSync(join(dataDir, DATABASE_FILE));
    other.exec('BEGIN IMMEDIATE');
    return { persist: () => undefined, end: () => other.close() };
  }),
);
await inTemporaryFolder(async (dataDir) => {
  const disk = mountSmallDisk(dataDir, DISK_MEGABYTES);
  if (disk === null) throw new Error('A small disk cannot be mounted here. Run this as root.');
  try {
    // Again and again: erasing a finished recording frees space.
    const outage = { persist: disk.fill, end: disk.empty };
    await survive('the disk is full', dataDir, /disk is full/, () => outage);
  } finally {
    disk.unmount();
  }
});
await inTemporaryFolder((dataDir) => stopWhileHanging(dataDir, limits));
limits.conclude();

async function inTemporaryFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'undertone-fault-injection-'));
  try {
    await work(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function survive(name: string, dataDir: string, reason: RegExp, begin: () => Outage): Promise<void> {
  const server = new ServerProcess(dataDir);
  await server.start();
  const asynch = new AsynchClient(server.url, server.key);
  const discrete = new Client(server, { body: clipForm() });
  const counts = { discrete: 0, reads: 0, writes: 0, refused: 0, slowestWriteMs: 0 };
  const running = await asynch.upload(longWav(600));
  const health = watchHealth(server.url);
  const outage = begin();
  const until = performance.now() + seconds * 1000;
  while (performance.now() < until) {
    outage.persist();
    const { status } = await discrete.post();
    if (status !== 200) limits.miss(`${name}: a short recording got ${status}`);
    counts.discrete++;
    const read = await asynch.prediction(running);
    if (read.status !== 200 && read.status !== 202) limits.miss(`${name}: a read got ${read.status}`);
    counts.reads++;
    const start = performance.now();
    const write = await asynch.initiate({});
    counts.slowestWriteMs = Math.max(counts.slowestWriteMs, performance.now() - start);
    counts.writes++;
    if (write.status === 503) {
      counts.refused++;
      if (!(Number(write.headers.get('retry-after')) >= 1)) limits.miss(`${name}: a 503 without Retry-After`);
    }
    await sleep(200);
  }
  outage.persist();
  const ready = await fetch(server.url + PATHS.ready);
  // Short recordings are still answered, so traffic is still wanted.
  if (ready.status !== 200) limits.miss(`${name}: /readyz is ${ready.status}`);
  const said = await ready.text();
  if (!reason.test(said)) limits.miss(`${name}: /readyz says ${said}`);
  limits.atLeast(`${name}: refused writes`, counts.refused, 1);
  limits.atMost(`${name}: the slowest write`, counts.slowestWriteMs, WRITE_LIMIT_MS + 100, ' ms');
  const seen = await health.stop();
  checkHealth(limits, `while ${name}`, seen);
  outage.end();
  const recovered = await fetch(server.url + PATHS.ready);
  if (recovered.status !== 200) limits.miss(`${name}: afterwards /readyz is ${recovered.status}`);
  const { emotions } = await asynch.result(running);
  if (emotions.length !== 120) limits.miss(`${name}: the running recording has ${emotions.length} steps`);
  await asynch.result(await asynch.upload(longWav(10)));
  if (!server.isAlive) limits.miss(`${name}: the process exited`);
  const slowestWriteMs = Math.round(counts.slowestWriteMs);
  console.log(name, JSON.stringify({ seconds, ...counts, slowestWriteMs, health: seen }));
  await discrete.close();
  await server.stop();
}
