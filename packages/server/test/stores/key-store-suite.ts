// Tests for every KeyStore.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import fc from 'fast-check';
import type { KeyStore, SqlStores } from '../../src/stores/contracts.ts';
import { HOUR, type StoresFactory, type TestStores } from './support/factories.ts';

export function keyStoreSuite(factory: StoresFactory): void {
  describe(`keys in ${factory.name}`, () => {
    let stores: TestStores;
    let first: SqlStores;
    let keys: KeyStore;
    let other: KeyStore;

    before(async () => {
      stores = await factory.make();
      first = await stores.open();
      keys = first.keys;
      ({ keys: other } = await stores.open());
    });
    beforeEach(() => stores.clear());
    after(() => stores.close());

    const inAnHour = () => new Date(stores.now() + HOUR);

    test('a new key is active in every process, under its name', async () => {
      assert.equal(await other.isEmpty(), true);
      const { key, record } = await keys.create('laptop');
      assert.match(key, new RegExp(`^ut_${record.id}_[\\w-]{43}$`));
      const { id } = record;
      const found = { state: 'active', id, name: 'laptop', owner: id, limits: {} };
      assert.deepEqual(await other.lookUp(key), found);
      assert.equal(await other.isEmpty(), false);
    });

    test('any change to a key makes it unknown', async () => {
      const { key } = await keys.create('laptop');
      await fc.assert(
        fc.asyncProperty(
          fc.nat(key.length - 1),
          fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 1 }),
          async (at, character) => {
            const changed = key.slice(0, at) + character + key.slice(at + 1);
            assert.equal((await keys.lookUp(changed)).state, changed === key ? 'active' : 'unknown');
          },
        ),
        { seed: 7 },
      );
      assert.deepEqual(await keys.lookUp(''), { state: 'unknown' });
      assert.deepEqual(await keys.lookUp('a-key-of-some-other-kind'), { state: 'unknown' });
    });

    test('a key expires on time', async () => {
      const { key, record } = await keys.create('for a while', { expiresAt: inAnHour() });
      assert.deepEqual(record.expiresAt, inAnHour());
      stores.advance(HOUR - 1);
      assert.equal((await other.lookUp(key)).state, 'active');
      assert.equal(await other.isEmpty(), false);
      stores.advance(1);
      assert.deepEqual(await other.lookUp(key), { state: 'expired' });
      assert.equal(await other.isEmpty(), true);
    });

    test('a revoked key is revoked everywhere, and cannot be revoked twice', async () => {
      const { key, record } = await keys.create('phone');
      const answer = await other.revoke(record.id);
      assert.deepEqual(answer, { revoked: { ...record, revokedAt: new Date(stores.now()) } });
      assert.deepEqual(await keys.lookUp(key), { state: 'revoked' });
      const guessed = key.slice(0, -1) + (key.endsWith('A') ? 'E' : 'A');
      assert.deepEqual(await keys.lookUp(guessed), { state: 'unknown' }, 'the id alone reveals nothing');
      assert.deepEqual(await keys.revoke(record.id), { why: 'unknown' });
      assert.deepEqual(await keys.revoke('never there'), { why: 'unknown' });
      assert.equal(await keys.isEmpty(), true);
    });

    test('a key is revoked by name if only one active key has that name', async () => {
      const ended = await keys.create('me', { expiresAt: inAnHour() });
      stores.advance(HOUR);
      const { key } = await keys.create('me');
      assert.ok('revoked' in (await keys.revoke('me')));
      assert.equal((await keys.lookUp(key)).state, 'revoked');
      assert.equal((await keys.lookUp(ended.key)).state, 'expired');
      const twins = [await keys.create('us'), await keys.create('us')] as const;
      assert.deepEqual(await keys.revoke('us'), { why: 'ambiguous' });
      for (const twin of twins) assert.equal((await keys.lookUp(twin.key)).state, 'active');
      assert.ok('revoked' in (await keys.revoke(twins[0].record.id)));
      assert.ok('revoked' in (await keys.revoke('us')));
      assert.equal((await keys.lookUp(twins[1].key)).state, 'revoked');
    });

    test('an id takes precedence over a name', async () => {
      const { key, record } = await keys.create('laptop');
      const odd = await keys.create(record.id);
      await keys.revoke(record.id);
      assert.equal((await keys.lookUp(key)).state, 'revoked');
      assert.equal((await keys.lookUp(odd.key)).state, 'active');
    });

    test('revoking a key deletes any number of open uploads, in batches', async () => {
      const { requests } = first;
      const owner = (await keys.create('busy')).record.id;
      const request = { owner, uploadId: 'u', model: 'm', intervalSeconds: 5, partCount: 1 };
      for (let i = 0; i < 7; i++) {
        await requests.create({ ...request, id: `upload-${i}` });
        if (i % 3 === 0) stores.advance(1);
      }
      await other.revoke(owner, { batchRows: 3 });
      assert.deepEqual(await requests.list(owner, { limit: 10 }), []);
      assert.deepEqual(await requests.countByState(), {});
    });

    test('revoking a key deletes its unfinished requests, and no others', async () => {
      const { requests } = first;
      const mine = (await keys.create('mine')).record.id;
      const theirs = (await keys.create('theirs')).record.id;
      const request = { uploadId: 'u', model: 'm', intervalSeconds: 5, partCount: 1 };
      const part = { number: 1, blob: '1-b', etag: 'e', bytes: 1 };
      const limits = { maxRequestBytes: 9, maxOwnerBytes: 9 };
      const queued = async (id: string) => {
        await requests.create({ ...request, id, owner: mine });
        await requests.addPart(id, part, limits);
        await requests.complete(id, new Map([[1, 'e']]));
      };
      for (const [id, owner] of [
        ['uploading', mine],
        ['theirs', theirs],
      ] as const) {
        await requests.create({ ...request, id, owner });
        await requests.addPart(id, part, limits);
      }
      await queued('completed');
      const done = await requests.claim({ leaseMs: 1_000, running: [] });
      await requests.finish('completed', done?.lease ?? '', { result: 'r' });
      await queued('processing');
      const running = await requests.claim({ leaseMs: 1_000, running: [] });
      await queued('queued');

      await other.revoke(mine);

      for (const id of ['uploading', 'queued', 'processing']) {
        assert.equal(await requests.find(id), null, id);
        assert.deepEqual(await requests.parts(id), [], id);
        assert.equal(await requests.delete(id, mine), 'already');
      }
      const lease = running?.lease ?? '';
      assert.equal(await requests.renew('processing', lease, { leaseMs: 1_000, progress: 0.5 }), false);
      assert.equal(await requests.claim({ leaseMs: 1_000, running: [] }), null);
      assert.equal((await requests.find('completed'))?.state, 'completed');
      assert.equal((await requests.find('theirs'))?.state, 'uploading');
      assert.deepEqual(await requests.needingBlobs(['uploading', 'queued', 'processing', 'theirs']), [
        'theirs',
      ]);
    });

    test('the list has every key, newest first, with its times', async () => {
      const old = await keys.create('old');
      stores.advance(HOUR);
      const young = await keys.create('young');
      const used = stores.now() + 1_000;
      await keys.recordLastUsed(new Map([[old.record.id, used]]));
      await other.recordLastUsed(
        new Map([
          [old.record.id, used - 500],
          ['of no stored key', used],
        ]),
      );
      await keys.recordLastUsed(new Map());
      await keys.revoke(young.record.id);
      assert.deepEqual(await other.list(), [
        { ...young.record, revokedAt: new Date(stores.now()) },
        { ...old.record, lastUsedAt: new Date(used) },
      ]);
      assert.deepEqual(old.record, {
        id: old.record.id,
        name: 'old',
        createdAt: new Date(stores.now() - HOUR),
        lastUsedAt: null,
        expiresAt: null,
        revokedAt: null,
        owner: old.record.id,
        limits: {},
      });
    });

    test('keys of one owner share its limits; rate and streams belong to each key', async () => {
      const limits = { rate: 600, storage: 10_000 };
      const first = await keys.create('phone', { owner: 'anna', limits });
      const second = await keys.create('laptop', { owner: 'anna', limits: { open: 5 } });
      const third = await keys.create('phone');
      const find = async ({ key }: { key: string }) => {
        const found = await other.lookUp(key);
        assert.ok(found.state === 'active');
        return [found.owner, found.limits];
      };
      assert.deepEqual(await find(first), ['anna', { rate: 600, storage: 10_000, open: 5 }]);
      assert.deepEqual(await find(second), ['anna', { storage: 10_000, open: 5 }]);
      assert.deepEqual(await find(third), [third.record.id, {}]);

      const answer = await keys.changeLimits('laptop', { streams: 2, storage: 99, open: null });
      assert.partialDeepStrictEqual(answer, {
        changed: { id: second.record.id, limits: { streams: 2, storage: 99 } },
      });
      assert.deepEqual(await find(first), ['anna', { rate: 600, storage: 99 }]);
      assert.deepEqual(await find(second), ['anna', { streams: 2, storage: 99 }]);
      assert.deepEqual((await other.list()).find(({ id }) => id === first.record.id)?.limits, {
        rate: 600,
        storage: 99,
      });
      assert.deepEqual(await keys.changeLimits('phone', { rate: 1 }), { why: 'ambiguous' });
      assert.deepEqual(await keys.changeLimits('nobody', { rate: 1 }), { why: 'unknown' });
    });

    test('changes are noted once, for whichever process asks first', async () => {
      const events = async (store: KeyStore) =>
        (await store.takeEvents()).map(({ change, key, owner, limits }) => ({ change, key, owner, limits }));
      await events(keys);
      const { record } = await keys.create('noted', { owner: 'anna', limits: { rate: 5 } });
      await other.changeLimits(record.id, { storage: 9 });
      await keys.revoke(record.id);
      const all = { key: record.id, owner: 'anna' };
      assert.deepEqual(await events(other), [
        { change: 'created', ...all, limits: { rate: 5 } },
        { change: 'limited', ...all, limits: { rate: 5, storage: 9 } },
        { change: 'revoked', ...all, limits: { rate: 5, storage: 9 } },
      ]);
      assert.deepEqual(await events(keys), []);
    });

    test('a key can be replaced by another of the same owner: revoking one keeps the unfinished requests', async () => {
      const { requests } = first;
      const old = await keys.create('old', { owner: 'anna' });
      const replacement = await keys.create('new', { owner: 'anna' });
      const request = { uploadId: 'u', model: 'm', intervalSeconds: 5, partCount: 1 };
      await requests.create({ ...request, id: 'r', owner: 'anna' });
      await keys.revoke(old.record.id);
      assert.equal((await requests.find('r'))?.state, 'uploading');
      await keys.revoke(replacement.record.id);
      assert.equal(await requests.find('r'), null, 'nobody can finish it any more');
    });
  });
}
