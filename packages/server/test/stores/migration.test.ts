import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { chmod, readdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, describe, test } from 'node:test';
import { promisify } from 'node:util';
import type { SqlStores } from '../../src/stores/contracts.ts';
import { openSqliteStores } from '../../src/stores/sqlite/database.ts';
import { DATABASE_FILE, eraseOldCopies, openDatabase } from '../../src/stores/sqlite/open.ts';
import { openThreadedStores } from '../../src/stores/sqlite/threaded-stores.ts';
import { DAY, HOUR, tempDir } from './support/factories.ts';

const FIXTURE = readFileSync(new URL('./version-1.0.sql', import.meta.url), 'utf8');
const COPY = `${DATABASE_FILE}.before-003`;
/** Shortly after version 1.0 stopped: one lease has expired, the other has not. */
const NOW = Number(/Time of the last step: (\d+)/.exec(FIXTURE)?.[1]) + 1_000;
const OWNER = '9827c7f1dc9c';

/** In order of creation. */
const [EXPIRED, COMPLETED, FAILED, LOST, HELD, RELEASED, SECOND, THIRD, JOBLESS, UPLOADING] = Array.from(
  { length: 10 },
  (_, i) => `00000000-0000-4000-8000-${String(i + 1).padStart(12, '0')}`,
) as [string, string, string, string, string, string, string, string, string, string];

async function folderOfVersion1(): Promise<string> {
  const dataDir = await tempDir();
  const database = new DatabaseSync(join(dataDir, DATABASE_FILE));
  database.exec(FIXTURE);
  database.close();
  return dataDir;
}

async function opened(dataDir: string, now = () => NOW): Promise<SqlStores> {
  const stores = await openSqliteStores({ dataDir, now });
  after(() => stores.close());
  return stores;
}

describe('a data folder of version 1.0', () => {
  test('keeps its keys', async () => {
    const { keys } = await opened(await folderOfVersion1());
    const key = (kind: string) => new RegExp(`${kind} key: (\\S+)`).exec(FIXTURE)?.[1] ?? '';
    const active = { state: 'active', id: OWNER, name: 'laptop', owner: OWNER, limits: {} };
    assert.deepEqual(await keys.lookUp(key('Active')), active, 'its requests stay its own');
    assert.deepEqual(await keys.lookUp(key('Revoked')), { state: 'revoked' });
    const [phone, laptop] = await keys.list();
    assert.deepEqual([phone?.name, laptop?.name, laptop?.expiresAt], ['phone', 'laptop', null]);
    assert.equal(laptop?.lastUsedAt?.toISOString(), '2030-01-01T00:00:01.000Z');
  });

  test('keeps requests in every state, with their results, failures and parts', async () => {
    const { requests } = await opened(await folderOfVersion1());
    const states = { completed: 1, failed: 1, expired: 1, processing: 2, queued: 4, uploading: 1 };
    assert.deepEqual(await requests.countByState(), states);
    const outcome = await requests.outcome(COMPLETED);
    assert.ok(outcome && 'result' in outcome);
    assert.deepEqual(JSON.parse(outcome.result).emotions, [{ t: '00:00', emotion: 'sad', confidence: 0.9 }]);
    assert.deepEqual(await requests.outcome(FAILED), {
      failure: {
        code: 'audio_too_short',
        detail: 'The recording is too short.',
        figures: { min_seconds: 5, actual_seconds: 2 },
      },
    });
    assert.deepEqual(await requests.find(HELD), {
      id: HELD,
      owner: OWNER,
      uploadId: 'upload of held',
      model: '7emotions',
      intervalSeconds: 10,
      partCount: 2,
      channels: 'mix',
      label: null,
      webhookUrl: null,
      durationSeconds: null,
      state: 'processing',
      progress: 0.25,
      createdAt: Date.UTC(2030, 0, 1, 0, 1, 35),
      expiresAt: Date.UTC(2030, 0, 2, 0, 1, 35),
    });
    assert.deepEqual(await requests.parts(HELD), [
      { number: 1, blob: '1-blob', etag: '1'.repeat(32), bytes: 100 },
      { number: 2, blob: '2-blob', etag: '2'.repeat(32), bytes: 200 },
    ]);
    assert.equal((await requests.find(EXPIRED))?.state, 'expired');
  });

  test('keeps the order of its queue and the failed attempts', async () => {
    let now = NOW;
    const { requests } = await opened(await folderOfVersion1(), () => now);
    const claims: [string | undefined, number | undefined][] = [];
    const claim = async () => {
      const claimed = await requests.claim({ leaseMs: HOUR, running: [] });
      if (claimed) claims.push([claimed.request.id, claimed.failedAttempts]);
    };
    for (let i = 0; i < 6; i++) await claim();
    now += HOUR / 2;
    await claim();
    assert.deepEqual(claims, [
      [LOST, 2], // had failed once, and its worker is dead
      [RELEASED, 1],
      [SECOND, 0],
      [THIRD, 1],
      [JOBLESS, 0],
      [HELD, 1], // once its lease has expired too
    ]);
  });

  test('continues an open upload, and counts stored bytes', async () => {
    const { requests } = await opened(await folderOfVersion1());
    assert.equal((await requests.find(UPLOADING))?.progress, 0.5);
    const { usage } = (await requests.findWithUsage(UPLOADING, 2)) ?? {};
    assert.deepEqual(usage, { requestBytes: 100, ownerBytes: 6 * 300 + 100 });
    const part = { number: 2, blob: '2-new', etag: 'new', bytes: 5 };
    const limits = { maxRequestBytes: 105, maxOwnerBytes: 1905 };
    assert.deepEqual(await requests.addPart(UPLOADING, part, limits), { added: true, replaced: null });
    const etags = new Map([
      [1, '1'.repeat(32)],
      [2, 'new'],
    ]);
    assert.partialDeepStrictEqual(await requests.complete(UPLOADING, etags), { queued: true });
  });

  test('is copied first, readable only by its owner, and the copy is erased after a day', async () => {
    const dataDir = await folderOfVersion1();
    await opened(dataDir);
    const path = join(dataDir, COPY);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    const copy = new DatabaseSync(path, { readOnly: true });
    assert.deepEqual({ ...copy.prepare('SELECT count(*) AS jobs FROM jobs').get() }, { jobs: 5 });
    assert.deepEqual({ ...copy.prepare('PRAGMA user_version').get() }, { user_version: 2 });
    copy.close();
    await eraseOldCopies(dataDir, DAY);
    assert.ok(readdirSync(dataDir).includes(COPY));
    const old = Date.now() / 1000 - 24 * 60 * 60 - 1;
    await utimes(path, old, old);
    await eraseOldCopies(dataDir, DAY);
    assert.ok(!readdirSync(dataDir).includes(COPY));
    assert.ok(readdirSync(dataDir).includes(DATABASE_FILE));
  });

  test('is migrated once when several processes start together', async () => {
    const dataDir = await folderOfVersion1();
    const module = new URL('../../src/stores/sqlite/database.ts', import.meta.url).href;
    const script = `const { openSqliteStores } = await import('${module}');
      const stores = await openSqliteStores({ dataDir: process.argv[1], now: () => ${NOW} });
      console.log(JSON.stringify(await stores.requests.countByState()));
      await stores.close();`;
    const args = ['--input-type=module', '-e', script, dataDir];
    const run = () => promisify(execFile)(process.execPath, args);
    const outputs = (await Promise.all([run(), run(), run(), run()])).map(({ stdout }) => JSON.parse(stdout));
    for (const states of outputs) assert.deepEqual(states, outputs[0]);
    assert.equal(outputs[0].queued, 4);
  });

  test('is unchanged when the migration fails', async () => {
    const dataDir = await folderOfVersion1();
    const other = new DatabaseSync(join(dataDir, DATABASE_FILE));
    other.exec('CREATE TABLE results (in_the_way TEXT)');
    await assert.rejects(openDatabase(dataDir), /results already exists/);
    other.exec('DROP TABLE results');
    other.close();
    const { requests } = await opened(dataDir);
    assert.equal((await requests.countByState()).queued, 4);
  });
});

describe('the database', () => {
  test('is readable only by its owner, in a new folder', async () => {
    const dataDir = join(await tempDir(), 'made', 'here');
    await opened(dataDir);
    assert.equal(statSync(dataDir).mode & 0o777, 0o700);
    await onlyForOwner(dataDir);
  });

  test('is readable only by its owner in a shared folder, even if its files already exist', async () => {
    const dataDir = await tempDir();
    await chmod(dataDir, 0o755);
    await opened(dataDir);
    await onlyForOwner(dataDir);
    for (const name of await readdir(dataDir)) await chmod(join(dataDir, name), 0o644);
    await opened(dataDir);
    await onlyForOwner(dataDir);
  });

  async function onlyForOwner(dataDir: string): Promise<void> {
    const names = await readdir(dataDir);
    assert.deepEqual(names.sort(), [DATABASE_FILE, `${DATABASE_FILE}-shm`, `${DATABASE_FILE}-wal`]);
    for (const name of names) assert.equal(statSync(join(dataDir, name)).mode & 0o777, 0o600, name);
  }

  test('of a newer version is left unchanged, and the error says what to do', async () => {
    const dataDir = await tempDir();
    (await openDatabase(dataDir)).close();
    const raw = new DatabaseSync(join(dataDir, DATABASE_FILE));
    raw.exec('PRAGMA user_version = 999');
    raw.close();
    const words = /newer version of Undertone.*999.*Install the newer version/;
    await assert.rejects(openSqliteStores({ dataDir }), words);
    await assert.rejects(openThreadedStores({ dataDir }), words);
    assert.deepEqual(await readdir(dataDir), [DATABASE_FILE]);
  });

  test('stores no key, only its hash, and nothing of a deleted result', async () => {
    const dataDir = await tempDir();
    const { keys, requests } = await opened(dataDir);
    const { key, record } = await keys.create('laptop');
    await requests.create({
      id: 'r',
      owner: record.id,
      uploadId: 'the-upload-id',
      model: 'the-model',
      intervalSeconds: 5,
      partCount: 0,
    });
    await requests.complete('r', new Map());
    const claim = await requests.claim({ leaseMs: 1_000, running: [] });
    const result = 'an angry sentence '.repeat(1_000);
    await requests.finish('r', claim?.lease ?? '', { result });
    const found = async (text: string) => {
      const files = (await readdir(dataDir)).map((name) => readFileSync(join(dataDir, name)));
      return files.some((file) => file.includes(text));
    };
    assert.equal(await found('angry sentence'), true, 'the search works');
    assert.equal(await found(key.split('_').slice(2).join('_')), false);
    await requests.delete('r', record.id);
    await requests.expire();
    for (const text of ['angry sentence', 'the-upload-id', 'the-model'])
      assert.equal(await found(text), false, text);
  });
});
