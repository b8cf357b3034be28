import assert from 'node:assert/strict';
import { access, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { openStores } from '@undertone/server';
import { parseExpiry } from '../src/commands/keys.ts';
import { temporaryFolder, undertone, undertoneProcess } from './support/undertone.ts';

test('create prints the key alone on standard output; list does not show it', async (t) => {
  const dataDir = await temporaryFolder(t);
  const made = await undertoneProcess(['keys', 'create', 'laptop', '--data-dir', dataDir]);
  assert.equal(made.code, 0);
  // The secret may contain underscores, so the key cannot be split at them.
  const [, id = '', secret = ''] = /^ut_([0-9a-f]{12})_([\w-]{43})\n$/.exec(made.stdout) ?? [];
  assert.ok(secret, made.stdout);
  assert.match(made.stderr, /"laptop".*It does not expire\./);

  const list = await undertone(['keys', 'list', '--data-dir', dataDir]);
  assert.match(list.stdout, new RegExp(`^${id}  laptop  .*never.*never.*active$`, 'm'));
  assert.ok(!list.stdout.includes(secret));
});

test('a revoked key stays in the list and cannot be revoked twice', async (t) => {
  const env = { SERVICE_DATA_DIR: await temporaryFolder(t) };
  const { stdout } = await undertone(['keys', 'create', 'old one'], { env });
  const id = stdout.split('_')[1] ?? '';
  assert.equal((await undertone(['keys', 'revoke', id], { env })).code, 0);
  assert.match((await undertone(['keys', 'list'], { env })).stdout, /^.*old one.* revoked$/m);
  const list = await undertone(['keys', 'list', '--json'], { env });
  const { revoked_at, created_at, ...record } = JSON.parse(list.stdout);
  assert.deepEqual(record, {
    id,
    name: 'old one',
    owner: 'old one',
    state: 'revoked',
    last_used_at: null,
    expires_at: null,
    limits: {},
    use: { queued: 0, open: 0, storage: 0, audio_hours: 0 },
  });
  assert.ok(revoked_at >= created_at);
  const again = await undertone(['keys', 'revoke', id], { env });
  assert.equal(again.code, 1);
  assert.match(again.stderr, new RegExp(`There is no active key with the ID or name "${id}"\\.`));
});

test('create takes an owner and limits, limits changes them, list shows them with the use of the owner', async (t) => {
  const dataDir = await temporaryFolder(t);
  const env = { SERVICE_DATA_DIR: dataDir };
  const all = 'rate=600,streams=20,queued=50,open=100,storage=10GB,audio_hours=200';
  assert.equal((await undertone(['keys', 'create', 'laptop', '--limits', all], { env })).code, 0);
  const stores = await openStores({ dataDir }, { kind: 'local' });
  await stores.ledger.addAudio(new Map([['laptop', 1_800]]));
  const old = await stores.keys.create('from before there were owners');
  await stores.close();

  const second = await undertone(['keys', 'create', 'phone', '--owner', 'laptop'], { env });
  assert.match(second.stderr, /It shares requests, webhooks and limits with "laptop"/);
  await undertone(['keys', 'create', 'rotated', '--owner', old.record.id], { env });
  const changed = await undertone(['keys', 'limits', 'laptop', 'rate=default,storage=5GB'], { env });
  assert.match(changed.stdout, /streams=20,queued=50,open=100,storage=5GB,audio_hours=200\.$/m);

  const { stdout } = await undertone(['keys', 'list', '--json'], { env });
  const keys = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const [laptop, phone, rotated] = ['laptop', 'phone', 'rotated'].map((wanted) =>
    keys.find(({ name }) => name === wanted),
  );
  const shared = { queued: 50, open: 100, storage: 5e9, audio_hours: 200 };
  assert.deepEqual([laptop.owner, laptop.limits], ['laptop', { streams: 20, ...shared }]);
  assert.deepEqual([phone.owner, phone.limits], ['laptop', shared]);
  assert.equal(phone.use.audio_hours, 0.5);
  assert.equal(rotated.owner, old.record.id, 'the requests of the old key');
  const table = (await undertone(['keys', 'list'], { env })).stdout;
  assert.match(
    table,
    /phone .* queued=50,open=100,storage=5GB,audio_hours=200 .*audio_hours=0\.5 .*active$/m,
  );

  for (const wrong of ['speed=1', 'rate=fast', 'storage', 'rate=-1']) {
    const refused = await undertone(['keys', 'limits', 'laptop', wrong], { env });
    assert.notEqual(refused.code, 0, wrong);
    assert.match(refused.stderr, /rate, streams, queued|rate must be|storage must be/, wrong);
  }
  assert.equal((await undertone(['keys', 'limits', 'nobody', 'rate=1'], { env })).code, 1);
});

test('revoke accepts a name; if two keys have it, it lists their IDs', async (t) => {
  const env = { SERVICE_DATA_DIR: await temporaryFolder(t) };
  const create = async (name: string) =>
    (await undertone(['keys', 'create', name], { env })).stdout.split('_')[1] ?? '';
  const ids = [await create('twin'), await create('twin')];
  const other = await create('other');
  assert.equal((await undertone(['keys', 'revoke', 'other'], { env })).code, 0);
  const ambiguous = await undertone(['keys', 'revoke', 'twin'], { env });
  assert.equal(ambiguous.code, 1);
  assert.match(ambiguous.stderr, /2 active keys are named "twin"\. Revoke one by its ID: /);
  for (const id of ids) assert.ok(ambiguous.stderr.includes(id));
  const records = (await undertone(['keys', 'list', '--json'], { env })).stdout.trimEnd().split('\n');
  const states = Object.fromEntries(
    records.map((line) => JSON.parse(line)).map(({ id, state }) => [id, state]),
  );
  assert.deepEqual(states, { [ids[0] ?? '']: 'active', [ids[1] ?? '']: 'active', [other]: 'revoked' });
});

test('--expires shows the date, and the key is still the only line on standard output', async (t) => {
  const env = { SERVICE_DATA_DIR: await temporaryFolder(t) };
  const made = await undertone(['keys', 'create', 'visitor', '--expires', '2100-01-31'], { env });
  assert.match(made.stderr, /It expires on 2100-01-31 00:00 UTC\./);
  assert.match(made.stdout, /^ut_\S+\n$/);
  assert.match(
    (await undertone(['keys', 'list'], { env })).stdout,
    /visitor .* 2100-01-31 00:00 UTC {2}active$/m,
  );
});

test('an expired key is listed as expired and cannot be revoked by name', async (t) => {
  const dataDir = await temporaryFolder(t);
  const stores = await openStores({ dataDir }, { kind: 'local' });
  await stores.keys.create('gone', { expiresAt: new Date(Date.now() - 1) });
  await stores.close();
  assert.match((await undertone(['keys', 'list', '--data-dir', dataDir])).stdout, /^.*gone.* expired$/m);
  const { code, stderr } = await undertone(['keys', 'revoke', 'gone', '--data-dir', dataDir]);
  assert.equal(code, 1);
  assert.match(stderr, /There is no active key with the ID or name "gone"/);
});

test('--expires accepts minutes, hours, days, weeks and dates', () => {
  const now = Date.parse('2026-02-01T00:00:00Z');
  const expected = {
    '45m': '2026-02-01T00:45:00.000Z',
    '12h': '2026-02-01T12:00:00.000Z',
    '30d': '2026-03-03T00:00:00.000Z',
    '2w': '2026-02-15T00:00:00.000Z',
    '2030-01-31': '2030-01-31T00:00:00.000Z',
    '2030-01-31T08:30+02:00': '2030-01-31T06:30:00.000Z',
  };
  for (const [text, at] of Object.entries(expected)) {
    assert.equal(parseExpiry(text, undefined, now).toISOString(), at, text);
  }
});

test('an invalid or past expiry exits with 2 and creates no key', async (t) => {
  const dataDir = join(await temporaryFolder(t), 'not-there');
  for (const expires of ['2020-01-01', '0d', 'soon', '30', '2030-02-31', '-1d']) {
    const { code, stdout, stderr } = await undertone([
      ...['keys', 'create', 'x', `--expires=${expires}`, '--data-dir', dataDir],
    ]);
    assert.deepEqual([code, stdout], [2, ''], expires);
    assert.match(stderr, /in the past|30d, 12h, 45m or 2w/, expires);
  }
  await assert.rejects(access(dataDir));
});

test('list and revoke do not create a data folder', async (t) => {
  const dataDir = join(await temporaryFolder(t), 'not-there');
  const list = await undertone(['keys', 'list', '--data-dir', dataDir]);
  assert.equal(list.code, 0);
  assert.match(list.stdout, /no keys/);
  assert.equal((await undertone(['keys', 'revoke', '0123456789ab', '--data-dir', dataDir])).code, 1);
  await assert.rejects(access(dataDir));
});

test('a name with control characters and a data folder that is a file are rejected without a stack', async (t) => {
  const dataDir = await temporaryFolder(t);
  const odd = await undertone(['keys', 'create', 'bell\u0007', '--data-dir', dataDir]);
  assert.deepEqual([odd.code, odd.stdout], [2, '']);
  assert.match(odd.stderr, /printable/);
  const file = join(dataDir, 'file');
  await writeFile(file, '');
  const wrong = await undertone(['keys', 'create', '--data-dir', file]);
  assert.deepEqual([wrong.code, wrong.stdout], [1, '']);
  assert.match(wrong.stderr, /^undertone: The data folder .*file is not a folder\..*--data-dir/);
  assert.doesNotMatch(wrong.stderr, /\n\s+at /);
});

test('list ignores invalid server settings that it does not use', async (t) => {
  const env = { SERVICE_DATA_DIR: await temporaryFolder(t), SERVICE_PORT: 'http' };
  assert.equal((await undertone(['keys', 'list'], { env })).code, 0);
});
