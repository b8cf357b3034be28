// Runs the stores through PgBouncer in session mode: keys, requests, and the notification that wakes a worker in another process.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openStores } from '@undertone/server/stores';
import { PostgresCluster } from '@undertone/testing/postgres-cluster';

const { PGBOUNCER_PROGRAM = 'pgbouncer' } = process.env;
const cluster = await PostgresCluster.start();
const folder = await mkdtemp(join(tmpdir(), 'undertone-pgbouncer-'));
await chmod(folder, 0o755);
// Sockets have no host in their URL, which the parser refuses.
const direct = new URL((await cluster.newDatabase()).replace('@/', '@socket/'));
const socket = direct.searchParams.get('host') ?? '';
const port = await freePort();
await writeFile(
  join(folder, 'pgbouncer.ini'),
  `[databases]
* = host=${socket} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = session
default_pool_size = 40
`,
);
// As the user of PostgreSQL, whose socket nobody else reaches.
const { uid, gid } = await stat(socket);
const pooler = spawn(PGBOUNCER_PROGRAM, ['--quiet', join(folder, 'pgbouncer.ini')], {
  uid,
  gid,
  stdio: ['ignore', 'ignore', 'inherit'],
});
const exited = once(pooler, 'exit');
try {
  const databaseUrl = `postgres://postgres@127.0.0.1:${port}${direct.pathname}`;
  const settings = { dataDir: folder, databaseUrl };
  let api = await openStores(settings, { kind: 'local' }).catch(() => null);
  for (let tries = 0; api === null && tries < 50; tries++) {
    await sleep(100);
    api = await openStores(settings, { kind: 'local' }).catch(() => null);
  }
  assert.ok(api, 'the stores do not open through PgBouncer');
  const worker = await openStores(settings, { kind: 'local' });
  const { key, record } = await api.keys.create('laptop');
  assert.equal((await worker.keys.lookUp(key)).state, 'active');
  const queued = Promise.withResolvers<number>();
  worker.shared?.listen({ queued: () => queued.resolve(performance.now()), over: () => undefined });
  await queued.promise; // says once that it listens
  const heard = Promise.withResolvers<number>();
  worker.shared?.listen({ queued: () => heard.resolve(performance.now()), over: () => undefined });
  const id = randomUUID();
  const request = { id, owner: record.owner, uploadId: 'u', model: '4emotions', intervalSeconds: 5 };
  await api.requests.create({ ...request, partCount: 1 });
  const limits = { maxRequestBytes: 9, maxOwnerBytes: 9 };
  await api.requests.addPart(id, { number: 1, blob: '1', etag: 'e', bytes: 1 }, limits);
  await api.requests.complete(id, new Map([[1, 'e']]));
  await heard.promise;
  const claim = await worker.requests.claim({ leaseMs: 5_000, running: [] });
  assert.equal(claim?.request.id, id);
  assert.equal(await worker.requests.finish(id, claim.lease, { result: '{}' }), true);
  await api.close();
  await worker.close();
  console.log('Keys, requests and notifications work through PgBouncer in session mode.');
} finally {
  pooler.kill('SIGKILL');
  await exited;
  await cluster.remove();
  await rm(folder, { recursive: true });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port: free } = server.address() as { port: number };
  server.close();
  return free;
}
