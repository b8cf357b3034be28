// Two bad days of an operator, in full length, against the real server: another program holds the database, and the disk
// of the data folder is full. See ../README.md.
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import { PATHS } from '@undertone/contract';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { longWav } from '@undertone/testing/long-wav';
import { Client } from '../support/client.ts';
import { checkHealth, watchHealth } from '../support/health.ts';
import { describeMachine, Limits } from '../support/report.ts';
import { startServerProcess } from '../support/server-process.ts';
import { clipForm } from '../support/voice.ts';

const WRITE_LIMIT_MS = 1_000;
const run = promisify(execFile);
const limits = new Limits();
const { values } = parseArgs({ options: { seconds: { type: 'string', default: '80' } } });
const seconds = Number(values.seconds);

/** Makes the store unavailable and sees to it that it stays so; what it returns makes it available again. */
type Trouble = (dataDir: string) => { persist(): Promise<void>; end(): Promise<void> };

const lockDatabase: Trouble = (dataDir) => {
  const other = new DatabaseSync(join(dataDir, 'undertone.db'));
  other.exec('BEGIN IMMEDIATE');
  return { persist: async () => {}, end: async () => other.close() };
};

const fillDisk: Trouble = (dataDir) => {
  const ballast = join(dataDir, 'ballast');
  // Once is not enough: a recording that is finished is erased and makes room.
  return { persist: () => fill(ballast), end: () => rm(ballast) };
};

async function fill(ballast: string): Promise<void> {
  for (const size of [1 << 20, 64 << 10, 4 << 10]) {
    const block = Buffer.alloc(size);
    const isFull = (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOSPC') throw error;
      return true;
    };
    while (!(await writeFile(ballast, block, { flag: 'a' }).then(() => false, isFull)));
  }
}

console.log(`${describeMachine()}\n`);
await badDay('the database is locked', lockDatabase, /locked/);
const disk = await mkdtemp(join(tmpdir(), 'undertone-small-disk-'));
await run('mount', ['-t', 'tmpfs', '-o', 'size=24m,mode=700', 'tmpfs', disk]);
try {
  await badDay('the disk is full', fillDisk, /disk is full/, disk);
} finally {
  await run('umount', ['-l', disk]);
  await rm(disk, { recursive: true });
}
limits.conclude();

async function badDay(name: string, begin: Trouble, reason: RegExp, folder?: string): Promise<void> {
  const dataDir = folder ?? (await mkdtemp(join(tmpdir(), 'undertone-bad-day-')));
  const server = await startServerProcess({ dataDir });
  const asynch = new AsynchClient(server.url, server.key);
  const discrete = new Client({ ...server, body: clipForm(), connections: 1 });
  const counts = { discrete: 0, reads: 0, writes: 0, refused: 0, slowestWriteMs: 0 };
  const running = await asynch.upload(longWav(600));
  const health = watchHealth(server.url);
  const trouble = begin(dataDir);
  const until = performance.now() + seconds * 1000;
  while (performance.now() < until) {
    await trouble.persist();
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
  await trouble.persist();
  const ready = await fetch(server.url + PATHS.ready);
  const detail = ready.status === 503 ? ((await ready.json()) as { detail: string }).detail : 'ready';
  if (!reason.test(detail)) limits.miss(`${name}: /readyz says "${detail}"`);
  if (counts.refused === 0) limits.miss(`${name}: no write was refused, so nothing was tried`);
  limits.atMost(`${name}: the slowest write`, counts.slowestWriteMs, WRITE_LIMIT_MS + 100, ' ms');
  const seen = await health.stop();
  checkHealth(limits, `while ${name}`, seen);
  await trouble.end();
  const recovered = await fetch(server.url + PATHS.ready);
  if (recovered.status !== 200) limits.miss(`${name}: afterwards /readyz is ${recovered.status}`);
  const { emotions } = await asynch.result(running);
  if (emotions.length !== 120)
    limits.miss(`${name}: the recording that was running has ${emotions.length} steps`);
  await asynch.result(await asynch.upload(longWav(10)));
  if (!server.isAlive()) limits.miss(`${name}: the process ended`);
  console.log(
    name,
    JSON.stringify({ seconds, ...counts, slowestWriteMs: Math.round(counts.slowestWriteMs), health: seen }),
  );
  discrete.close();
  await server.stop();
  if (folder === undefined) await rm(dataDir, { recursive: true });
}
