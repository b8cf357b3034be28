import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { DATABASE_FILE, openDatabase, SqliteKeyStore } from '../src/index.ts';
import { EnvironmentKey } from '../src/keys/environment-key.ts';
import { tempDir } from './support/app.ts';

async function store() {
  const dataDir = await tempDir();
  const database = openDatabase(dataDir);
  const keys = new SqliteKeyStore(database);
  after(async () => {
    await keys.close();
    database.close();
  });
  return { dataDir, database, keys };
}

test('a new key is accepted, and belongs to its name', async () => {
  const { keys } = await store();
  const { key, record } = await keys.create('laptop');
  assert.deepEqual(await keys.verify(key), { id: record.id, name: 'laptop' });
});

test('any change to a key makes it another one', async () => {
  const { keys } = await store();
  const { key } = await keys.create('laptop');
  await fc.assert(
    fc.asyncProperty(
      fc.nat(key.length - 1),
      fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 1 }),
      async (at, character) => {
        const changed = key.slice(0, at) + character + key.slice(at + 1);
        assert.equal((await keys.verify(changed)) === null, changed !== key);
      },
    ),
    { seed: 7 },
  );
});

test('a revoked key no longer holds, and cannot be revoked twice', async () => {
  const { keys } = await store();
  const { key, record } = await keys.create('phone');
  assert.equal(await keys.revoke(record.id), true);
  assert.equal(await keys.verify(key), null);
  assert.equal(await keys.revoke(record.id), false);
  assert.equal(await keys.revoke('unknown'), false);
  assert.equal(await keys.isEmpty(), true);
});

test('the list says when a key was made and last used', async () => {
  const { keys } = await store();
  const before = Date.now();
  const { key } = await keys.create('used');
  await keys.create('unused');
  await keys.verify(key);
  const records = new Map((await keys.list()).map((record) => [record.name, record]));
  assert.ok((records.get('used')?.createdAt.getTime() ?? 0) >= before);
  assert.ok((records.get('used')?.lastUsedAt?.getTime() ?? 0) >= before);
  assert.equal(records.get('unused')?.lastUsedAt, null);
});

test('only the SHA-256 of a key is kept', async () => {
  const { dataDir, database, keys } = await store();
  const { key, record } = await keys.create('secret');
  const row = database.prepare('SELECT hash FROM keys WHERE id = ?').get(record.id) as { hash: Uint8Array };
  assert.deepEqual(Buffer.from(row.hash), createHash('sha256').update(key).digest());
  const secret = key.split('_').slice(2).join('_');
  for (const file of [DATABASE_FILE, `${DATABASE_FILE}-wal`]) {
    assert.ok(!(await readFile(join(dataDir, file))).includes(secret));
  }
});

test('a key revoked by another process is refused at once', async () => {
  const { dataDir, keys } = await store();
  const { key, record } = await keys.create('elsewhere');
  const other = openDatabase(dataDir);
  await new SqliteKeyStore(other).revoke(record.id);
  other.close();
  assert.equal(await keys.verify(key), null);
});

test('the data folder is for its owner alone', async () => {
  const dataDir = join(await tempDir(), 'made', 'here');
  openDatabase(dataDir).close();
  assert.equal((await stat(dataDir)).mode & 0o077, 0);
});

test('a database of a newer version is left alone', async () => {
  const dataDir = await tempDir();
  openDatabase(dataDir).close();
  const raw = new DatabaseSync(join(dataDir, DATABASE_FILE));
  raw.exec('PRAGMA user_version = 999');
  raw.close();
  assert.throws(() => openDatabase(dataDir), /newer version/);
});

test('the key of the environment has the same id after every start, and that is not the key', () => {
  const key = 'a-key-from-the-environment';
  const caller = new EnvironmentKey(key).verify(key);
  assert.deepEqual(new EnvironmentKey(key).verify(key), caller);
  assert.ok(caller && !caller.id.includes(key));
  assert.equal(new EnvironmentKey(key).verify(`${key}x`), null);
});
