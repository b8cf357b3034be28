// `undertone backup` and `undertone restore` between both databases, with requests in every state.
import assert from 'node:assert/strict';
import { readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openStores, type Stores } from '@undertone/server/stores';
import { PostgresCluster } from '@undertone/testing/postgres-cluster';
import { temporaryFolder, undertone } from './support/undertone.ts';

let cluster: PostgresCluster;
before(async () => {
  cluster = await PostgresCluster.start();
});
after(() => cluster?.remove());

const LIMITS = { maxRequestBytes: 99, maxOwnerBytes: 999 };
const WEBHOOK = 'https://example.org/hook';
const TARGET = { id: 'r', expiresAt: Date.parse('2100-01-01'), baseUrl: 'http://host' };

/** Two requests in each unfinished state, one of each with audio, and one in each finished state. */
async function fill(stores: Stores): Promise<{ key: string; owner: string }> {
  const { key, record } = await stores.keys.create('laptop');
  const owner = record.owner;
  for (const state of ['uploading', 'queued', 'processing', 'completed', 'failed', 'deleted']) {
    for (const audio of ['kept', 'gone']) {
      const id = `${state}-${audio}`;
      const request = { id, owner, uploadId: 'u', model: '4emotions', intervalSeconds: 5, partCount: 1 };
      await stores.requests.create({ ...request, label: id, webhookUrl: WEBHOOK });
      const { bytes, etag } = await stores.blobs.write(id, '1', voice());
      await stores.requests.addPart(id, { number: 1, blob: '1', etag, bytes }, LIMITS);
      if (state === 'uploading') continue;
      await stores.requests.complete(id, new Map([[1, etag]]));
      if (state === 'queued') continue;
      if (state === 'deleted') await stores.requests.delete(id, owner);
    }
  }
  for (;;) {
    const claim = await stores.requests.claim({ leaseMs: 60_000, running: [] });
    if (claim === null) break;
    const { id } = claim.request;
    const failure = { code: 'unreadable_audio', detail: 'Damaged.', figures: {} } as const;
    if (id.startsWith('queued')) {
      await stores.requests.requeue(id, claim.lease, { countAttempt: false, afterMs: 3_600_000 });
    } else if (id.startsWith('completed')) {
      await stores.requests.finish(id, claim.lease, { result: '{"emotions":[]}' }, 8);
    } else if (id.startsWith('failed')) await stores.requests.finish(id, claim.lease, { failure });
  }
  return { key, owner };
}

async function* voice(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('voice');
}

for (const [source, target] of [
  ['embedded', 'embedded'],
  ['embedded', 'postgres'],
  ['postgres', 'postgres'],
  ['postgres', 'embedded'],
] as const) {
  test(`a backup of the ${source} database is restored into the ${target} one`, async (t) => {
    const [from, to, elsewhere] = [
      await temporaryFolder(t),
      await temporaryFolder(t),
      await temporaryFolder(t),
    ];
    const file = join(elsewhere, 'all.backup');
    const fromUrl = source === 'postgres' ? await cluster.newDatabase() : '';
    const stores = await openStores({ dataDir: from, databaseUrl: fromUrl }, { kind: 'local' });
    const { key, owner } = await fill(stores);
    const urls = await stores.secrets.urls(TARGET, [1]);

    const made = await undertone(['backup', file, '--data-dir', from], {
      env: { SERVICE_DATABASE_URL: fromUrl },
    });
    assert.equal(made.code, 0, made.stderr);
    assert.match(made.stdout, /^Wrote 1 key, 12 requests and 4 pending webhooks to /);
    assert.match(made.stderr, /^6 recordings not finished/);
    assert.deepEqual(await readdir(elsewhere), ['all.backup']);
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    await stores.close();

    const toUrl = target === 'postgres' ? await cluster.newDatabase() : '';
    const settings = { dataDir: to, databaseUrl: toUrl };
    const audio = await openStores({ dataDir: to }, { kind: 'local' });
    for (const state of ['uploading', 'queued', 'processing']) {
      await audio.blobs.write(`${state}-kept`, '1', voice());
    }
    await audio.close();
    const env = { SERVICE_DATABASE_URL: toUrl };
    const restored = await undertone(['restore', file, '--data-dir', to], { env });
    assert.equal(restored.code, 3, restored.stderr);
    assert.match(restored.stdout, /^Restored 1 key, 12 requests and 6 pending webhooks\.\n$/);
    assert.match(restored.stderr, /^2 recordings failed, because the audio is gone/);

    const again = await openStores(settings, { kind: 'local' });
    t.after(() => again.close());
    const { requests } = again;
    assert.equal((await again.keys.lookUp(key)).state, 'active');
    assert.deepEqual(await again.secrets.urls(TARGET, [1]), urls, 'signed with the same secret');
    const states = await Promise.all(
      ['uploading', 'queued', 'processing', 'completed', 'failed', 'deleted'].flatMap((state) =>
        ['kept', 'gone'].map(async (kind) => (await requests.find(`${state}-${kind}`))?.state ?? null),
      ),
    );
    assert.deepEqual(states, [
      ...['uploading', 'uploading', 'queued', 'failed', 'queued', 'failed'],
      ...['completed', 'completed', 'failed', 'failed', null, null],
    ]);
    assert.deepEqual(await requests.outcome('completed-gone'), { result: '{"emotions":[]}' });
    assert.deepEqual(
      [(await requests.parts('uploading-kept')).length, await requests.parts('uploading-gone')],
      [1, []],
    );
    assert.equal(await requests.delete('deleted-kept', owner), 'already');
    const due = await again.webhooks.claim({ limit: 100, holdMs: 1_000 });
    assert.deepEqual(due.map(({ label, status }) => `${label} ${status}`).sort(), [
      'completed-gone completed',
      'completed-kept completed',
      'failed-gone failed',
      'failed-kept failed',
      'processing-gone failed',
      'queued-gone failed',
    ]);
    const claim = await requests.claim({ leaseMs: 1_000, running: [] });
    assert.equal(claim?.request.id, 'processing-kept');
    assert.equal(claim?.failedAttempts, 0, 'that its worker is gone is no fault of the recording');

    const refused = await undertone(['restore', file, '--data-dir', to], { env });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /Stop (it|all of them) first/, 'a process is using it');
    await again.close();
    const twice = await undertone(['restore', file, '--data-dir', to], { env });
    assert.equal(twice.code, 1);
    assert.match(twice.stderr, /already has keys or requests/);
  });
}

test('a backup of the keys alone has no results', async (t) => {
  const folder = await temporaryFolder(t);
  const stores = await openStores({ dataDir: folder }, { kind: 'local' });
  await fill(stores);
  await stores.close();
  const file = join(folder, 'keys.backup');
  const made = await undertone(['backup', file, '--keys-only', '--data-dir', folder]);
  assert.match(made.stdout, /^Wrote 1 key, 0 requests and 0 pending webhooks/);
  const twice = await undertone(['backup', file, '--data-dir', folder]);
  assert.equal(twice.code, 1);
  assert.match(twice.stderr, /keys\.backup exists already/);
});

test('only a backup can be restored', async (t) => {
  const folder = await temporaryFolder(t);
  await writeFile(join(folder, 'notes.txt'), 'Buy milk.');
  for (const name of ['notes.txt', 'missing.backup']) {
    const { code, stderr } = await undertone([
      'restore',
      join(folder, name),
      '--data-dir',
      join(folder, 'data'),
    ]);
    assert.equal(code, 1);
    assert.match(stderr, /is not a backup|There is no /);
    assert.doesNotMatch(stderr, /\n {4}at /);
  }
});

test('move refuses a data folder that a server uses, and a database with another signing secret', async (t) => {
  const dataDir = await temporaryFolder(t);
  const databaseUrl = await cluster.newDatabase();
  const env = { SERVICE_DATABASE_URL: databaseUrl };
  const stores = await openStores({ dataDir }, { kind: 'local' });
  await stores.keys.create('laptop');
  const live = await undertone(['move', '--data-dir', dataDir], { env });
  assert.equal(live.code, 1);
  assert.match(live.stderr, /A server is using .* Stop it first/);
  await stores.close();
  await (await openStores({ dataDir, databaseUrl }, { kind: 'local' })).close();
  const foreign = await undertone(['move', '--data-dir', dataDir], { env });
  assert.equal(foreign.code, 1);
  assert.match(foreign.stderr, /signing secret of its own/);
});
