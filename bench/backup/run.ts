// Backs up a service with requests in every state and pending webhooks, loses it, restores it and looks at everything; then moves
// one from SQLite to PostgreSQL. See ../README.md.
import { cp, mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { openStores } from '@undertone/server/stores';
import { PostgresCluster } from '@undertone/testing/postgres-cluster';
import { freePort } from '@undertone/testing/ready';
import { S3_CREDENTIALS, S3Server } from '@undertone/testing/s3-server';
import { describeMachine, Limits, rounded } from '../support/report.ts';
import { check } from './check.ts';
import { type Filled, fill, PENDING_WEBHOOKS } from './fill.ts';
import { embedded, type Place, shared, temporaryFolder, temporaryFolders, undertone } from './place.ts';

const OWNER = 'drill';
const STATES = ['completed', 'deleted', 'expired', 'failed', 'processing', 'queued', 'uploading'];

const limits = new Limits();
console.log(`${describeMachine()}\n`);
Object.assign(process.env, S3_CREDENTIALS);
const [cluster, s3] = await Promise.all([PostgresCluster.start(), S3Server.start()]);
// Nobody listens there until something was restored.
const port = await freePort();
try {
  const newShared = async (bucket?: string) => shared(cluster, s3, bucket ?? (await s3.newBucket()));

  const one = embedded(await temporaryFolder());
  const fromOne = await backUp(one);
  const copy = await temporaryFolder();
  await cp(one.dataDir, copy, { recursive: true });
  await rm(one.dataDir, { recursive: true });
  await mkdir(one.dataDir);
  await restore(one, one, fromOne, 'lost');
  await restore(one, await newShared(), fromOne, 'lost');
  await move(embedded(copy), await newShared(), fromOne);

  const bucket = await s3.newBucket();
  const many = await newShared(bucket);
  const fromMany = await backUp(many);
  await restore(many, embedded(await temporaryFolder()), fromMany, 'lost');
  // The recordings are still in the bucket.
  await restore(many, await newShared(bucket), fromMany, 'kept');
} finally {
  await s3.remove();
  await cluster.remove();
  for (const folder of temporaryFolders()) await rm(folder, { recursive: true, force: true });
}
limits.conclude();

interface BackedUp {
  readonly file: string;
  readonly filled: Filled;
  /** Ids of webhooks. */
  readonly pending: ReadonlySet<string>;
}

/** Fills a service, backs it up while it runs, and kills it. */
async function backUp(place: Place): Promise<BackedUp> {
  const created = await undertone(['keys', 'create', OWNER], place);
  const filled = await fill(place, created.stdout.trim(), `http://127.0.0.1:${port}/hook`);
  const file = join(await temporaryFolder(), 'all.backup');
  const made = await undertone(['backup', file], place);
  expectCode(`backup of ${place.name}`, made, 0);
  if (place.env['SERVICE_DATABASE_URL'] === undefined) {
    const target = await cluster.newDatabase();
    const env = { SERVICE_DATABASE_URL: target };
    expectCode('move of a running server', await undertone(['move'], { ...place, env }), 1);
  }
  await filled.server.end('SIGKILL');
  const database = new DatabaseSync(file, { readOnly: true });
  const pending = new Set(
    database
      .prepare('SELECT id FROM webhooks')
      .all()
      .map(({ id }) => String(id)),
  );
  const states = database
    .prepare('SELECT state, count(*) AS count FROM requests GROUP BY state ORDER BY state')
    .all();
  const chunks = database.prepare('SELECT count(*) AS count FROM result_chunks').get()?.['count'];
  database.close();
  const found = states.map(({ state, count }) => `${count} ${state}`).join(', ');
  const { size } = await stat(file);
  console.log(
    `\nBackup of ${place.name} in ${rounded(made.seconds)} s, ${rounded(size / 1e6)} MB: ${found}, ${chunks} chunks of results, ${pending.size} pending webhooks.`,
  );
  for (const state of STATES) {
    if (!states.some((row) => row['state'] === state))
      limits.miss(`no request is ${state} in the backup of ${place.name}`);
  }
  limits.atLeast(`chunks of results in the backup of ${place.name}`, Number(chunks), 2);
  if (pending.size !== PENDING_WEBHOOKS)
    limits.miss(`${pending.size} pending webhooks in the backup of ${place.name}`);
  return { file, filled, pending };
}

async function restore(
  from: Place,
  to: Place,
  { file, filled, pending }: BackedUp,
  waiting: 'kept' | 'lost',
): Promise<void> {
  const what = `${from.name} to ${to.name}`;
  const restored = await undertone(['restore', file], to);
  expectCode(`restore, ${what}`, restored, waiting === 'kept' ? 0 : 3);
  console.log(
    `\n${what}: restored in ${rounded(restored.seconds)} s, exit code ${restored.code}. ${oneLine(restored)}`,
  );
  await check(what, to, filled, { pending, waiting, port }, limits);
}

/** First with recordings that are not finished, which are left behind; then without. */
async function move(from: Place, to: Place, { filled, pending }: BackedUp): Promise<void> {
  const place = { dataDir: from.dataDir, env: to.env };
  const first = await undertone(['move'], place);
  expectCode('move with unfinished recordings', first, 3);
  console.log(`\nMove: exit code ${first.code} in ${rounded(first.seconds)} s. ${oneLine(first)}`);
  const stores = await openStores({ dataDir: from.dataDir }, { kind: 'local' });
  for (const id of [filled.uploading, ...filled.waiting]) await stores.requests.delete(id, OWNER);
  await stores.close();
  const second = await undertone(['move'], place);
  expectCode('move again', second, 0);
  console.log(`Move again: exit code ${second.code}. ${oneLine(second)}`);
  await check('move', to, filled, { pending, waiting: 'left behind', port }, limits);
}

type Ran = Awaited<ReturnType<typeof undertone>>;

function expectCode(what: string, ran: Ran, code: number): void {
  if (ran.code !== code) limits.miss(`${what}: exit code ${ran.code}, ${code} expected. ${oneLine(ran)}`);
}

function oneLine({ stdout, stderr }: Ran): string {
  return `${stdout}${stderr}`.trim().replace(/\s*\n\s*/g, ' ');
}
