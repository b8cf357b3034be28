import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '@undertone/testing/eventually';
import { PostgresCluster } from '@undertone/testing/postgres-cluster';
import { LONG_TIMEOUT_MS, SHORT_TIMEOUT_MS } from '@undertone/testing/timeouts';
import type { RequestStore } from '../../src/stores/contracts.ts';
import { StoreUnavailableError } from '../../src/stores/errors.ts';
import type { PostgresOptions } from '../../src/stores/postgres/database.ts';
import { lockForOneProcess, SecondProcessError } from '../../src/stores/postgres/single-process.ts';
import { openPostgresStores, type PostgresStores } from '../../src/stores/postgres/stores.ts';
import { keyStoreSuite } from './key-store-suite.ts';
import { quotaSuite } from './quota-suite.ts';
import { requestStateMachineSuite } from './request-state-machine-suite.ts';
import { requestStoreSuite } from './request-store-suite.ts';
import { DAY, START, type StoresFactory } from './support/factories.ts';
import { webhookStoreSuite } from './webhook-store-suite.ts';

let cluster: PostgresCluster;
before(async () => {
  cluster = await PostgresCluster.start();
});
after(() => cluster.remove());

const postgres: StoresFactory = {
  name: 'PostgreSQL',
  make: async () => {
    const url = await cluster.newDatabase();
    const opened: PostgresStores[] = [];
    let ms = START;
    return {
      now: () => ms,
      advance: (by) => {
        ms += by;
      },
      open: async () => {
        const stores = await openPostgresStores({ url, now: () => ms, answerMs: LONG_TIMEOUT_MS });
        opened.push(stores);
        return stores;
      },
      clear: async () => {
        await opened[0]?.database.query('DELETE FROM requests');
        await opened[0]?.database.query('DELETE FROM keys');
        await opened[0]?.database.query('DELETE FROM owners');
        await opened[0]?.database.query('DELETE FROM audio_use');
      },
      close: async () => {
        for (const stores of opened) await stores.close();
      },
    };
  },
};

requestStoreSuite(postgres);
keyStoreSuite(postgres);
quotaSuite(postgres);
webhookStoreSuite(postgres);
requestStateMachineSuite(postgres, 6);

const NEW_REQUEST = { owner: 'o', uploadId: 'u', model: 'm', intervalSeconds: 5, partCount: 1 };
const LIMITS = { maxRequestBytes: 9, maxOwnerBytes: 9_000 };

async function queue(requests: RequestStore, id: string): Promise<void> {
  await requests.create({ ...NEW_REQUEST, id });
  await requests.addPart(id, { number: 1, blob: '1', etag: 'e', bytes: 1 }, LIMITS);
  assert.partialDeepStrictEqual(await requests.complete(id, new Map([[1, 'e']])), { queued: true });
}

/** Within the time limit of one call. */
async function unavailable(call: () => Promise<unknown>): Promise<void> {
  const start = performance.now();
  await assert.rejects(call, StoreUnavailableError);
  assert.ok(performance.now() - start < 2 * SHORT_TIMEOUT_MS);
}

describe('PostgreSQL shared by several processes', () => {
  const opened: PostgresStores[] = [];
  after(async () => {
    for (const stores of opened) await stores.close();
  });
  async function open(
    url: string,
    options: Partial<PostgresOptions> = { answerMs: LONG_TIMEOUT_MS },
  ): Promise<PostgresStores> {
    const stores = await openPostgresStores({ url, ...options });
    opened.push(stores);
    return stores;
  }

  test('an empty database is migrated once when many processes start together', async () => {
    const url = await cluster.newDatabase();
    const all = await Promise.all(Array.from({ length: 6 }, () => open(url)));
    const secrets = await Promise.all(all.map((stores) => stores.secret()));
    assert.equal(new Set(secrets.map((secret) => secret.toString('hex'))).size, 1);
    assert.equal(secrets[0]?.length, 32);
  });

  test('a database of a newer version is rejected, and the error says what to do', async () => {
    const url = await cluster.newDatabase();
    await open(url);
    await cluster.query('UPDATE undertone.schema_version SET version = 999', url);
    await assert.rejects(open(url), /newer version.*schema is 999.*Install the newer version/);
  });

  test('times come from the database', async () => {
    const { requests } = await open(await cluster.newDatabase());
    const before = Date.now();
    const { createdAt } = await requests.create({ ...NEW_REQUEST, id: 'r' });
    assert.ok(createdAt >= before - 1 && createdAt <= Date.now() + 1);
  });

  test('another process is notified of a queued request, and of a deleted one that was processing', async () => {
    const url = await cluster.newDatabase();
    const [here, there] = [await open(url), await open(url)];
    const events: string[] = [];
    let wake = () => {};
    const record = (what: string) => {
      events.push(what);
      wake();
    };
    there.listen({ queued: () => record('queued'), over: record });
    async function until(count: number): Promise<void> {
      while (events.length < count) await new Promise<void>((resolve) => (wake = resolve));
    }
    await until(1); // it is listening now, and polls for what it may have missed
    await queue(here.requests, 'r');
    await until(2);
    await there.requests.claim({ leaseMs: 1_000, running: [] });
    await here.requests.delete('r', 'o');
    await until(3);
    assert.deepEqual(events, ['queued', 'queued', 'r']);
  });

  test('rate limits are shared by processes; while the database is unavailable each counts for itself', async () => {
    const url = await cluster.newDatabase();
    const [one, other] = [await open(url), await open(url)];
    const buckets = [one, other].map((stores) => stores.makeBuckets('key'));
    const wrongKeys = one.makeBuckets('address');
    const taken = [];
    for (let i = 0; i < 12; i++) taken.push(await buckets[i % 2]?.take('k', 10));
    assert.equal(taken.filter((allowance) => allowance?.allowed).length, 10);
    const last = taken.at(-1);
    assert.equal(last?.remaining, 0);
    assert.ok((last?.retryAfterSeconds ?? 0) > 0 && (last?.retryAfterSeconds ?? 9) <= 6);
    assert.ok((await buckets[0]?.take('another', 10))?.allowed);
    assert.ok((await wrongKeys.take('k', 10)).allowed, 'a separate limit');
    await one.close();
    assert.ok((await buckets[0]?.take('k', 10))?.allowed);
  });

  test('one process takes each turn of a periodic task', async () => {
    const url = await cluster.newDatabase();
    const all = await Promise.all(Array.from({ length: 4 }, () => open(url)));
    const turns = await Promise.all(all.map((stores) => stores.takeTurn('sweep', 60_000)));
    assert.deepEqual(turns.filter(Boolean), [true]);
    assert.equal(await all[0]?.takeTurn('sweep', 60_000), false);
    assert.equal(await all[0]?.takeTurn('sweep', 0), true);
    await all[0]?.database.query('UPDATE periodic_tasks SET begun_at = begun_at + 3600000');
    assert.equal(await all[0]?.takeTurn('sweep', 60_000), true, 'the clock was set back by an hour');
  });

  test('calls to a locked database fail in time, and have no effect later', async () => {
    const url = await cluster.newDatabase();
    const { requests } = await open(url, { answerMs: SHORT_TIMEOUT_MS });
    await queue(requests, 'r');
    const release = await holdLock(url);
    await unavailable(() => requests.create({ ...NEW_REQUEST, id: 'late' }));
    await unavailable(() => requests.claim({ leaseMs: 60_000, running: [] }));
    await release();
    assert.equal(await requests.find('late'), null);
    const claim = await requests.claim({ leaseMs: 60_000, running: [] });
    assert.deepEqual([claim?.request.id, claim?.failedAttempts], ['r', 0]);
  });

  test('sweeping, revoking and results have a longer budget than what a caller waits for', async () => {
    const url = await cluster.newDatabase();
    const { requests, keys } = await open(url, { answerMs: SHORT_TIMEOUT_MS, longMs: LONG_TIMEOUT_MS });
    await keys.create('k');
    await queue(requests, 'r');
    const { lease = '' } = (await requests.claim({ leaseMs: 60_000, running: [] })) ?? {};
    const release = await holdLock(url);
    const long = Promise.all([
      requests.expire(),
      requests.finish('r', lease, { result: '1' }),
      requests.outcome('r'),
      keys.revoke('k'),
    ]);
    // More calls than there are connections for long ones: callers never wait for those.
    await unavailable(() => requests.find('r'));
    await release();
    const [, finished, , revoked] = await long;
    assert.equal(finished, true);
    assert.ok('revoked' in revoked);
  });

  test('a key is refused at once, even while its requests cannot be ended', async () => {
    const url = await cluster.newDatabase();
    const { requests, keys } = await open(url, { answerMs: SHORT_TIMEOUT_MS, longMs: SHORT_TIMEOUT_MS });
    const { key, record } = await keys.create('k');
    await requests.create({ ...NEW_REQUEST, id: 'r', owner: record.id });
    const release = await holdLock(url);
    await assert.rejects(keys.revoke('k'), /too slowly; the key is revoked, but .* remain until they expire/);
    assert.equal((await keys.lookUp(key)).state, 'revoked');
    await release();
    assert.equal((await requests.find('r'))?.state, 'uploading');
  });

  test('the sweep leaves out rows that another process has locked, and does the rest', async () => {
    const url = await cluster.newDatabase();
    let now = START;
    const { requests } = await open(url, { answerMs: LONG_TIMEOUT_MS, now: () => now });
    for (const id of ['locked', 'b', 'c']) await requests.create({ ...NEW_REQUEST, id });
    now += DAY;
    const release = await holdLock(url, `SELECT FROM undertone.requests WHERE id = 'locked' FOR UPDATE`);
    while ((await requests.expire({ limit: 2 })).more);
    assert.deepEqual(await requests.countByState(), { uploading: 1, expired: 2 });
    await release();
    await requests.expire();
    assert.deepEqual(await requests.countByState(), { expired: 3 });
  });

  test('a lock keeps a second process out, survives a lost connection, and is free after the first ends', async () => {
    const url = await cluster.newDatabase();
    const lost: Error[] = [];
    const lock = () => lockForOneProcess(url, (error) => lost.push(error));
    const release = await lock();
    await assert.rejects(lock(), /another Undertone server uses this database/);
    const holder = `SELECT pid FROM pg_locks JOIN pg_database ON oid = database
      WHERE locktype = 'advisory' AND granted AND datname = current_database()`;
    const before = JSON.stringify(await cluster.query(holder, url));
    await cluster.query(`SELECT pg_terminate_backend(pid) FROM (${holder}) AS held`, url);
    let now = before;
    while (now === before || !/\d/.test(now)) now = JSON.stringify(await cluster.query(holder, url));
    await assert.rejects(lock(), SecondProcessError);
    await release();
    await (await lock())();
    assert.deepEqual(lost, []);
  });

  test('by default, calls to a locked database fail within a second', async () => {
    const url = await cluster.newDatabase();
    const { requests } = await open(url, {});
    const release = await holdLock(url);
    const took: number[] = [];
    for (let times = 0; times < 3; times++) {
      const start = performance.now();
      await assert.rejects(requests.countByState(), StoreUnavailableError);
      took.push(performance.now() - start);
    }
    await release();
    // The fastest of three: the machine itself may stall for a moment.
    assert.ok(Math.min(...took) < 1_000, `refused after ${took} ms`);
  });

  test('a connection lost during a transaction fails the call, not the process', async () => {
    const url = await cluster.newDatabase();
    const { database, keys } = await open(url);
    const work = database.transaction(async (query) => {
      const [row] = await query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      await cluster.query(`SELECT pg_terminate_backend(${row?.pid})`, url);
      await sleep(100);
      await query('SELECT 1');
    });
    await assert.rejects(work, StoreUnavailableError);
    assert.equal(await keys.isEmpty(), true);
  });

  test('a claim whose answer was lost is claimed again, without a failed attempt', async () => {
    await using proxy = await LossyProxy.to(await cluster.newDatabase());
    await using stores = disposable(await openPostgresStores({ url: proxy.url, answerMs: SHORT_TIMEOUT_MS }));
    const { requests } = stores;
    await queue(requests, 'r');
    proxy.loseAnswers = true;
    await unavailable(() => requests.claim({ leaseMs: 60_000, running: [] }));
    proxy.loseAnswers = false;
    const found = await eventually(() => requests.find('r'));
    assert.equal(found?.state, 'processing', 'the database executed the claim');
    const claim = await requests.claim({ leaseMs: 60_000, running: [] });
    assert.deepEqual([claim?.request.id, claim?.failedAttempts], ['r', 0]);
  });

  test('while it is stopped calls fail in time; after a restart everything recovers', async () => {
    const { requests, keys, ...stores } = await open(await cluster.newDatabase(), {
      answerMs: SHORT_TIMEOUT_MS,
      outageMs: 1,
    });
    const { key } = await keys.create('k');
    let notified = () => {};
    const listening = new Promise<void>((resolve) => (notified = resolve));
    stores.listen({ queued: () => notified(), over: () => undefined });
    await listening;
    await queue(requests, 'r');
    const claim = await requests.claim({ leaseMs: 1, running: [] });
    await cluster.stopServer();
    await unavailable(() => requests.find('r'));
    await unavailable(() => keys.lookUp(key));
    await unavailable(() => requests.checkWritable());
    const again = new Promise<void>((resolve) => (notified = resolve));
    await cluster.startServer();
    await again;
    assert.equal((await keys.lookUp(key)).state, 'active');
    await requests.checkWritable();
    // The lease expired while it could not be renewed, so its holder has time to renew it now.
    assert.equal(await requests.claim({ leaseMs: 60_000, running: [] }), null);
    assert.equal(await requests.finish('r', claim?.lease ?? '', { result: '1' }), true);
  });

  test('a call that waited for a connection and is reported as failed has no effect later', async () => {
    const url = await cluster.newDatabase();
    const { database, requests } = await open(url, { answerMs: 2_000 });
    // Every connection is in use for most of the budget; what comes next gets the rest.
    const busy = Array.from({ length: 10 }, () => database.query('SELECT pg_sleep(1.2)'));
    const slow = database.transaction(async (query) => {
      await query('INSERT INTO write_check (id, at) SELECT 1, 0 FROM pg_sleep(1.2)');
    });
    await assert.rejects(slow, StoreUnavailableError);
    await Promise.all(busy);
    await sleep(800);
    assert.deepEqual(await database.query('SELECT at FROM write_check'), []);
    // The next user of that connection has its whole budget again.
    for (let times = 0; times < 10; times++) await requests.countByState();
    await Promise.all(Array.from({ length: 10 }, () => database.query('SELECT pg_sleep(1)')));
  });

  test("calls that fail while others are answered do not keep a dead worker's lease", async () => {
    const url = await cluster.newDatabase();
    const { database, requests } = await open(url, { answerMs: 400, outageMs: 200 });
    await queue(requests, 'r');
    await requests.claim({ leaseMs: 1, running: [] });
    const fail = () => assert.rejects(database.query('SELECT pg_sleep(9)'), StoreUnavailableError);
    await fail();
    const until = performance.now() + 1_000;
    const failing = Array.from({ length: 2 }, async () => {
      while (performance.now() < until) await fail();
    });
    let claim = null;
    while (performance.now() < until) {
      claim ??= await requests.claim({ leaseMs: 500, running: [] });
      await sleep(20);
    }
    await Promise.all(failing);
    assert.equal(claim?.request.id, 'r');
  });

  test('a lease that ran out while the database hung counts no failed attempt; one that ran out later does', async () => {
    const url = await cluster.newDatabase();
    await queue((await open(url)).requests, 'r');
    const { requests } = await open(url, { answerMs: 500, outageMs: 1 });
    const claim = async () => {
      for (;;) {
        const claimed = await eventually(() => requests.claim({ leaseMs: 1, running: [] }));
        if (claimed !== null) return claimed.failedAttempts;
      }
    };
    assert.equal(await claim(), 0);
    cluster.pause();
    try {
      await unavailable(() => requests.find('r'));
    } finally {
      cluster.resume();
    }
    assert.equal(await claim(), 0, 'its holder could not renew it');
    for (let attempts = 0; attempts === 0; attempts = await claim()) await sleep(5);
  });

  test('a process that waited for the database counts no failed attempt for leases that ran out before', async () => {
    const url = await cluster.newDatabase();
    const { requests } = await open(url);
    const running: string[] = [];
    for (const id of ['r', 's']) {
      await queue(requests, id);
      running.push((await requests.claim({ leaseMs: 1, running }))?.lease ?? '');
    }
    await sleep(2);
    const waited = await open(url, { answerMs: LONG_TIMEOUT_MS, afterOutage: true });
    let claim = null;
    while (claim === null) claim = await waited.requests.claim({ leaseMs: 1, running: [] });
    assert.deepEqual([claim.request.id, claim.failedAttempts], ['r', 0]);
    const other = await requests.claim({ leaseMs: 60_000, running: [claim.lease] });
    assert.deepEqual([other?.request.id, other?.failedAttempts], ['s', 1], 'it saw no outage');
  });

  test('stores and the lock of one process close in time while the database hangs', async () => {
    const url = await cluster.newDatabase();
    const stores = await openPostgresStores({ url, answerMs: LONG_TIMEOUT_MS });
    const unlock = await lockForOneProcess(url, () => undefined);
    await new Promise<void>((listening) =>
      stores.listen({ queued: () => listening(), over: () => undefined }),
    );
    await stores.requests.expire(); // opens a connection for long calls
    cluster.pause();
    try {
      const closed = Promise.all([unlock(), stores.close()]).then(() => 'closed');
      assert.equal(await Promise.race([closed, sleep(5_000, 'still open', { ref: false })]), 'closed');
    } finally {
      cluster.resume();
    }
  });

  test('a claim reads only unfinished requests', async () => {
    const url = await cluster.newDatabase();
    const { requests } = await open(url);
    await cluster.query(
      `INSERT INTO undertone.requests (id, owner, upload_id, model, interval_seconds, part_count, state, created_at, expires_at)
         SELECT n, 'o', '', '', 5, 1, 'completed', 0, 1e15 FROM generate_series(1, 20000) AS n;
       ANALYZE undertone.requests`,
      url,
    );
    await queue(requests, 'r');
    const plan = await cluster.query(
      `EXPLAIN SELECT id FROM undertone.requests WHERE state IN ('queued', 'processing')
       ORDER BY turn, queued_at, id LIMIT 1 FOR UPDATE SKIP LOCKED`,
      url,
    );
    assert.match(JSON.stringify(plan), /requests_waiting/);
    assert.equal((await requests.claim({ leaseMs: 1_000, running: [] }))?.request.id, 'r');
  });
});

/** A proxy in front of the database that can drop its answers. */
class LossyProxy {
  loseAnswers = false;
  readonly url: string;
  readonly #server: Server;

  private constructor(url: string, server: Server) {
    this.url = url;
    this.#server = server;
  }

  static async to(target: string): Promise<LossyProxy> {
    const { pathname, searchParams } = new URL(target.replace('@/', '@localhost/'));
    const server = createServer((client) => {
      const database = connect(`${searchParams.get('host')}/.s.PGSQL.5432`);
      client.pipe(database);
      database.on('data', (bytes) => proxy.loseAnswers || client.write(bytes));
      for (const socket of [client, database]) socket.on('error', () => undefined);
      database.on('close', () => client.destroy());
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const proxy = new LossyProxy(`postgres://postgres@127.0.0.1:${port}${pathname}`, server);
    return proxy;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}

function disposable(stores: PostgresStores): PostgresStores & AsyncDisposable {
  return { ...stores, [Symbol.asyncDispose]: () => stores.close() };
}

/** Blocks all reads and writes of requests, or what the statement locks, until the returned function is called. */
async function holdLock(url: string, lock = 'LOCK TABLE undertone.requests'): Promise<() => Promise<void>> {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`BEGIN; ${lock}`);
  return () => client.end();
}
