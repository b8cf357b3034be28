// The database file shrinks after the requests in it have expired, in steps that keep nobody waiting.
import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { openSqliteStores } from '../../src/stores/sqlite/database.ts';
import { copyDatabase, DATABASE_FILE, openDatabase } from '../../src/stores/sqlite/open.ts';
import { DAY, START, tempDir } from './support/factories.ts';

const FIXTURE = readFileSync(new URL('./version-1.0.sql', import.meta.url), 'utf8');
const MIB = 1024 * 1024;

/** Completed requests with results of 100 kB. */
async function fill(dataDir: string, count: number): Promise<void> {
  const database = await openDatabase(dataDir);
  database.exec('BEGIN');
  const request = database.prepare(
    `INSERT INTO requests (id, owner, upload_id, model, interval_seconds, part_count, state, created_at, expires_at)
     VALUES (?, 'o', 'u', 'm', 5, 1, 'completed', ${START}, ${START + DAY})`,
  );
  const result = database.prepare('INSERT INTO results (request_id, result) VALUES (?, ?)');
  for (let i = 0; i < count; i++) {
    request.run(`r${i}`);
    result.run(`r${i}`, String(i).padEnd(100_000, 'x'));
  }
  database.exec('COMMIT');
  database.close();
}

function modeOf(path: string): unknown {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    return database.prepare('PRAGMA auto_vacuum').get()?.['auto_vacuum'];
  } finally {
    database.close();
  }
}

test('after much has expired the file is small again, and other calls are answered meanwhile', async () => {
  const dataDir = await tempDir();
  await fill(dataDir, 400);
  let now = START;
  const stores = await openSqliteStores({ dataDir, now: () => now });
  const size = () => statSync(join(dataDir, DATABASE_FILE)).size;
  await stores.requests.expire();
  assert.ok(size() > 38 * MIB, `${size()} bytes`);
  now += DAY;
  let steps = 0;
  const steppedMs: number[] = [];
  for (let more = true; more; steps++) {
    const start = performance.now();
    ({ more } = await stores.requests.expire());
    steppedMs.push(performance.now() - start);
  }
  assert.ok(size() < 6 * MIB, `${size()} bytes`);
  assert.ok(steps > 15, `${steps} steps`);
  // Not the slowest: the machine itself may stall for a moment.
  steppedMs.sort((a, b) => a - b);
  assert.ok((steppedMs.at(-3) ?? 0) < 250, `${steppedMs}`);
  assert.deepEqual(await stores.requests.countByState(), { expired: 400 });
  await stores.close();
  const database = new DatabaseSync(join(dataDir, DATABASE_FILE));
  assert.equal(database.prepare('PRAGMA integrity_check').get()?.['integrity_check'], 'ok');
  database.close();
});

test('little free space stays for what comes next', async () => {
  const dataDir = await tempDir();
  await fill(dataDir, 30);
  const path = join(dataDir, DATABASE_FILE);
  const stores = await openSqliteStores({ dataDir, now: () => START + DAY });
  while ((await stores.requests.expire()).more);
  assert.ok(statSync(path).size > 2.5 * MIB);
  await stores.close();
});

test('an older database is changed at its upgrade, and a copy of it at once', async () => {
  const dataDir = await tempDir();
  const path = join(dataDir, DATABASE_FILE);
  const old = new DatabaseSync(path);
  old.exec(FIXTURE);
  old.close();
  assert.equal(modeOf(path), 0);
  copyDatabase(path, `${path}.copy`);
  assert.equal(modeOf(`${path}.copy`), 2);
  (await openDatabase(dataDir)).close();
  assert.equal(modeOf(path), 2);
});
