// The commands for several machines, with a real PostgreSQL and a real S3.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openStores } from '@undertone/server';
import { PostgresCluster } from '@undertone/testing/postgres-cluster';
import { S3_CREDENTIALS, S3Server } from '@undertone/testing/s3-server';
import { judgeClock } from '../src/store-checks.ts';
import { temporaryFolder, undertone } from './support/undertone.ts';

let cluster: PostgresCluster;
let s3: S3Server;

before(async () => {
  Object.assign(process.env, S3_CREDENTIALS);
  [cluster, s3] = await Promise.all([PostgresCluster.shared(), S3Server.shared()]);
});
after(async () => {
  await s3?.remove();
  await cluster?.remove();
});

const LIMITS = { maxRequestBytes: 9, maxOwnerBytes: 9 };

test('migrate creates the tables once, and says so', async () => {
  const env = { SERVICE_DATABASE_URL: await cluster.newDatabase() };
  const first = await undertone(['migrate'], { env });
  assert.equal(first.code, 0, first.stderr);
  assert.match(first.stdout, /^The database was migrated from schema 0 to \d+\.\n$/);
  assert.match(
    (await undertone(['migrate'], { env })).stdout,
    /^The database is up to date: schema \d+\.\n$/,
  );
});

test('migrate and move say what to do if the database is missing or unavailable', async (t) => {
  const none = await undertone(['migrate']);
  assert.equal(none.code, 1);
  assert.match(none.stderr, /^undertone: Set SERVICE_DATABASE_URL to the database/);
  const env = { SERVICE_DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/none' };
  const unavailable = await undertone(['migrate'], { env });
  assert.equal(unavailable.code, 1);
  assert.match(unavailable.stderr, /cannot be used.*its database cannot be reached/);
  assert.doesNotMatch(unavailable.stderr, /hunter2|\n {4}at /);
  const empty = await undertone(['move', '--data-dir', await temporaryFolder(t)], { env });
  assert.equal(empty.code, 1);
  assert.match(empty.stderr, /There is no undertone\.db in /);
});

test('keys are created, listed and revoked in PostgreSQL', async () => {
  const env = { SERVICE_DATABASE_URL: await cluster.newDatabase() };
  const made = await undertone(['keys', 'create', 'shared'], { env });
  assert.match(made.stdout, /^ut_\S+\n$/);
  assert.match((await undertone(['keys', 'list'], { env })).stdout, /shared .* active$/m);
  assert.equal((await undertone(['keys', 'revoke', 'shared'], { env })).code, 0);
  assert.match((await undertone(['keys', 'list'], { env })).stdout, /shared .* revoked$/m);
});

test('move copies keys and results, skips unfinished requests, and can be run again', async (t) => {
  const dataDir = await temporaryFolder(t);
  const databaseUrl = await cluster.newDatabase();
  const env = { SERVICE_DATABASE_URL: databaseUrl };
  const from = await openStores({ dataDir }, { kind: 'local' });
  const { key, record } = await from.keys.create('laptop', { expiresAt: new Date('2100-01-01') });
  const { key: revoked } = await from.keys.create('old');
  await from.keys.revoke('old');
  const part = { number: 1, blob: '1', etag: 'e', bytes: 1 };
  const failure = { code: 'audio_too_short', detail: 'Too short.', figures: { min_seconds: 5 } } as const;
  const outcomes = { done: { result: '{"emotions":[]}' }, failed: { failure }, deleted: null, waiting: null };
  for (const [id, outcome] of Object.entries(outcomes)) {
    const more = { uploadId: 'u', model: '4emotions', intervalSeconds: 5, partCount: 1 };
    const webhookUrl = id === 'done' ? 'https://receiver.example/hook' : null;
    await from.requests.create({ id, owner: record.id, webhookUrl, ...more });
    await from.requests.addPart(id, part, LIMITS);
    await from.requests.complete(id, new Map([[1, 'e']]));
    if (outcome === null) continue;
    const claim = await from.requests.claim({ leaseMs: 60_000, running: [] });
    await from.requests.finish(id, claim?.lease ?? '', outcome);
  }
  await from.requests.delete('deleted', record.id);
  await from.keys.changeLimits(record.id, { rate: 60, storage: 1_000 });
  await from.ledger.addAudio(new Map([[record.id, 90]]));
  const before = await from.requests.find('done');
  const target = { id: 'waiting', expiresAt: Date.parse('2100-01-01'), baseUrl: 'http://host' };
  const urls = await from.secrets.urls(target, [1]);
  await from.close();

  const moved = await undertone(['move', '--data-dir', dataDir], { env });
  assert.equal(moved.code, 3, moved.stderr);
  assert.equal(moved.stdout, 'Copied 2 keys, 3 past requests and 1 pending webhook.\n');
  assert.match(moved.stderr, /^1 recording not copied, because not finished/);
  const again = await undertone(['move', '--data-dir', dataDir], { env });
  assert.equal(again.stdout, 'Copied 0 keys, 0 past requests and 0 pending webhooks.\n');

  const to = await openStores({ dataDir, databaseUrl }, { kind: 'local' });
  t.after(() => to.close());
  assert.deepEqual(await to.keys.lookUp(key), {
    state: 'active',
    id: record.id,
    name: 'laptop',
    owner: record.id,
    limits: { rate: 60, storage: 1_000 },
  });
  assert.equal((await to.ledger.use()).get(record.id)?.audioSeconds, 90);
  const [webhook, ...others] = await to.webhooks.claim({ limit: 9, holdMs: 1_000 });
  assert.partialDeepStrictEqual(webhook, { requestId: 'done', owner: record.id, status: 'completed' });
  assert.deepEqual(others, []);
  await to.webhooks.remove(webhook?.id ?? '');
  await undertone(['move', '--data-dir', dataDir], { env });
  assert.deepEqual(
    await to.webhooks.claim({ limit: 9, holdMs: 1_000 }),
    [],
    'one that was sent is not sent again',
  );
  assert.deepEqual(await to.keys.lookUp(revoked), { state: 'revoked' });
  assert.deepEqual(await to.requests.find('done'), before);
  assert.deepEqual(await to.requests.outcome('done'), { result: '{"emotions":[]}' });
  assert.deepEqual(await to.requests.outcome('failed'), { failure });
  assert.equal(await to.requests.delete('deleted', record.id), 'already');
  assert.equal(await to.requests.find('waiting'), null);
  assert.deepEqual(await to.secrets.urls(target, [1]), urls, 'signed with the same secret');
});

test('the doctor accepts a working database and bucket, and leaves nothing behind', async () => {
  const bucket = await s3.newBucket();
  const databaseUrl = await cluster.newDatabase();
  const { code, stdout } = await doctor({ databaseUrl, bucket });
  assert.equal(code, 0, stdout);
  assert.match(stdout, /^ok +database +PostgreSQL \d+\S*, the first start creates its tables$/m);
  assert.match(stdout, /^ok +bucket +\S+ can be written, read, listed and deleted$/m);
  assert.doesNotMatch(stdout, /data folder|disk/);
  const { openS3 } = await import('@undertone/server');
  const store = await openS3({ s3Bucket: bucket, s3Endpoint: s3.endpoint });
  assert.deepEqual(await store.groups(), []);
  store.close();
  const tables = await cluster.query(`SELECT 1 FROM pg_tables WHERE schemaname = 'undertone'`, databaseUrl);
  assert.deepEqual(tables, []);
});

test('the doctor names the problem of a database and of a bucket', async () => {
  const databaseUrl = await cluster.newDatabase();
  const bucket = await s3.newBucket();
  await undertone(['migrate'], { env: { SERVICE_DATABASE_URL: databaseUrl } });
  await cluster.query('CREATE ROLE guest LOGIN', databaseUrl);
  const guest = databaseUrl.replace('postgres@', 'guest@');
  const closed = await doctor({ databaseUrl: guest, bucket: 'there-is-none' });
  assert.equal(closed.code, 1);
  assert.match(closed.stdout, /^error +database .*its user has no access to the table .*\n +GRANT /m);
  assert.match(closed.stdout, /^error +bucket +its bucket does not exist/m);
  await cluster.query('UPDATE undertone.schema_version SET version = 999', databaseUrl);
  const env = { AWS_SECRET_ACCESS_KEY: 'a-wrong-secret' };
  const wrong = await doctor({ databaseUrl, bucket }, env);
  assert.match(wrong.stdout, /^error +database .*has schema 999.*\n +Install the newer version/m);
  assert.match(wrong.stdout, /^error +bucket +its object store refuses the credentials/m);
  const unreachable = await doctor(
    { databaseUrl: 'postgres://127.0.0.1:1/none', bucket },
    { endpoint: 'http://127.0.0.1:1' },
  );
  assert.match(unreachable.stdout, /^error +database +its database cannot be reached .*ECONNREFUSED/m);
  assert.match(unreachable.stdout, /^error +bucket +its object store cannot be reached .*ECONNREFUSED/m);
});

test('the doctor finds a bucket without a CORS rule, and an upload URL that does not work', async () => {
  const bucket = await s3.newBucket();
  const databaseUrl = await cluster.newDatabase();
  const page = { SERVICE_CORS_ORIGINS: 'https://app.example.org' };
  await s3.allowUploadsFrom(bucket, 'https://another.example.org');
  const closed = await doctor({ databaseUrl, bucket }, page);
  assert.equal(closed.code, 0);
  assert.match(
    closed.stdout,
    /^warning +bucket .*CORS: https:\/\/app\.example\.org.*\n +Browsers cannot upload/m,
  );
  await s3.allowUploadsFrom(bucket, 'https://app.example.org');
  assert.match((await doctor({ databaseUrl, bucket }, page)).stdout, /^ok +bucket /m);
  const nowhere = { SERVICE_S3_PUBLIC_ENDPOINT: 'http://127.0.0.1:1' };
  const lost = await doctor({ databaseUrl, bucket }, nowhere);
  assert.equal(lost.code, 1);
  assert.match(lost.stdout, /^error +bucket .*not through an upload URL: .*\n.*SERVICE_S3_PUBLIC_ENDPOINT/m);
});

test('clock skew is a warning, and an error if it is large', () => {
  assert.equal(judgeClock('x', -9_000).state, 'ok');
  assert.deepEqual(
    [judgeClock('x', 11_000).state, judgeClock('x', 11_000).found],
    ['warning', 'x; its clock is 11 s ahead'],
  );
  assert.equal(judgeClock('x', -400_000).state, 'error');
});

function doctor(
  { databaseUrl, bucket }: { databaseUrl: string; bucket: string },
  { endpoint = s3.endpoint, ...more }: Record<string, string> = {},
) {
  const env = { SERVICE_DATABASE_URL: databaseUrl, SERVICE_S3_BUCKET: bucket, SERVICE_S3_ENDPOINT: endpoint };
  return undertone(['doctor', '--port', '0'], { env: { ...S3_CREDENTIALS, ...env, ...more } });
}
