import assert from 'node:assert/strict';
import { access, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder, undertone } from './support/undertone.ts';

test('a key is printed once, alone on standard output, and listed without its secret', async (t) => {
  const dataDir = await temporaryFolder(t);
  const made = await undertone(['keys', 'create', 'laptop', '--data-dir', dataDir]);
  assert.equal(made.code, 0);
  // The secret may hold underscores of its own, so the key cannot be taken apart by them.
  const [, id = '', secret = ''] = /^ut_([0-9a-f]{12})_([\w-]{43})\n$/.exec(made.stdout) ?? [];
  assert.ok(secret, made.stdout);
  assert.match(made.stderr, /"laptop"/);

  const list = await undertone(['keys', 'list', '--data-dir', dataDir]);
  assert.match(list.stdout, new RegExp(`^${id}  laptop  .*never.*holds$`, 'm'));
  assert.ok(!list.stdout.includes(secret));
});

test('a revoked key stays in the list as revoked, and cannot be revoked twice', async (t) => {
  const env = { SERVICE_DATA_DIR: await temporaryFolder(t) };
  const { stdout } = await undertone(['keys', 'create', 'old one'], { env });
  const id = stdout.split('_')[1] ?? '';
  assert.equal((await undertone(['keys', 'revoke', id], { env })).code, 0);
  const list = await undertone(['keys', 'list', '--json'], { env });
  const record = JSON.parse(list.stdout);
  assert.equal(record.id, id);
  assert.equal(record.name, 'old one');
  assert.match(record.revoked_at, /^\d{4}-/);
  const again = await undertone(['keys', 'revoke', id], { env });
  assert.equal(again.code, 1);
  assert.match(again.stderr, /keys list/);
});

test('looking for keys where there are none makes nothing', async (t) => {
  const dataDir = join(await temporaryFolder(t), 'not-there');
  const list = await undertone(['keys', 'list', '--data-dir', dataDir]);
  assert.equal(list.code, 0);
  assert.match(list.stdout, /no keys/);
  assert.equal((await undertone(['keys', 'revoke', '0123456789ab', '--data-dir', dataDir])).code, 1);
  await assert.rejects(access(dataDir));
});

test('a name with control characters and a folder that is a file are refused in plain words', async (t) => {
  const dataDir = await temporaryFolder(t);
  const odd = await undertone(['keys', 'create', 'bell\u0007', '--data-dir', dataDir]);
  assert.deepEqual([odd.code, odd.stdout], [1, '']);
  assert.match(odd.stderr, /printable/);
  const file = join(dataDir, 'file');
  await writeFile(file, '');
  const wrong = await undertone(['keys', 'create', '--data-dir', file]);
  assert.deepEqual([wrong.code, wrong.stdout], [1, '']);
  assert.match(wrong.stderr, /--data-dir/);
  assert.doesNotMatch(wrong.stderr, /\n\s+at /);
});

test('a wrong setting of the server is no reason not to list the keys', async (t) => {
  const env = { SERVICE_DATA_DIR: await temporaryFolder(t), SERVICE_PORT: 'http' };
  assert.equal((await undertone(['keys', 'list'], { env })).code, 0);
});
