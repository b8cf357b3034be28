// Tests for every store: what an owner may have at the same time.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { LedgerStore, NewRequest, Quota, RequestStore } from '../../src/stores/contracts.ts';
import { QuotaExceededError } from '../../src/stores/errors.ts';
import { DAY, HOUR, type StoresFactory, type TestStores } from './support/factories.ts';

const UNLIMITED = { maxRequestBytes: 1_000, maxOwnerBytes: 1_000 };
const NAMED = new Map([[1, 'e']]);
const LEASE = 60_000;

export function quotaSuite(factory: StoresFactory): void {
  describe(`quotas in ${factory.name}`, () => {
    let stores: TestStores;
    let store: RequestStore;
    let other: RequestStore;
    let ledger: LedgerStore;
    let otherLedger: LedgerStore;

    before(async () => {
      stores = await factory.make();
      ({ requests: store, ledger } = await stores.open());
      ({ requests: other, ledger: otherLedger } = await stores.open());
    });
    beforeEach(() => stores.clear());
    after(() => stores.close());

    function newRequest(more: Partial<NewRequest> = {}): NewRequest {
      const ids = { id: randomUUID(), uploadId: randomUUID() };
      return { ...ids, owner: 'anna', model: 'm', intervalSeconds: 5, partCount: 1, ...more };
    }
    async function arrived(quota: Partial<Quota> = {}, more: Partial<NewRequest> = {}): Promise<string> {
      const { id } = await store.create(newRequest(more), quota);
      await store.addPart(id, { number: 1, blob: '1-b', etag: 'e', bytes: 10 }, UNLIMITED);
      return id;
    }
    const exceeded = (quota: keyof Quota, limit: number, used: number) => (error: unknown) => {
      assert.ok(error instanceof QuotaExceededError);
      assert.deepEqual([error.quota, error.limit, error.used], [quota, limit, used]);
      return true;
    };

    test('open uploads: exactly as many as allowed, however many processes ask at once', async () => {
      const quota = { open: 3 };
      const calls = Array.from({ length: 12 }, (_, i) => (i % 2 ? store : other).create(newRequest(), quota));
      const made = (await Promise.allSettled(calls)).flatMap((call) =>
        call.status === 'fulfilled' ? [call.value.id] : [],
      );
      assert.equal(made.length, 3);
      await assert.rejects(other.create(newRequest(), quota), exceeded('open', 3, 3));
      await other.create(newRequest({ owner: 'ben' }), quota);
      await store.delete(made[0] ?? '', 'anna');
      await other.create(newRequest(), quota);
      stores.advance(DAY);
      await other.create(newRequest(), quota);
      await store.create(newRequest(), { open: 0 });
    });

    test('open uploads: an idempotency key finds its request although there are no more', async () => {
      const once = { key: 'k', query: 'q' };
      const first = await store.createOnce(newRequest(), once, { open: 1 });
      assert.ok('request' in first && first.isNew);
      const again = await other.createOnce(newRequest(), once, { open: 1 });
      assert.ok('request' in again && !again.isNew && again.request.id === first.request.id);
      const another = other.createOnce(newRequest(), { ...once, key: 'l' }, { open: 1 });
      await assert.rejects(another, exceeded('open', 1, 1));
    });

    test('open uploads: an interrupted call does not count', async () => {
      await store.create(newRequest({ uploadLeaseMs: LEASE }), { open: 1 });
      await assert.rejects(store.create(newRequest(), { open: 1 }), exceeded('open', 1, 1));
      stores.advance(LEASE);
      await store.create(newRequest(), { open: 1 });
    });

    test('open uploads: an interrupted call is replaced while its part arrives, without a deadlock', async () => {
      for (let i = 0; i < 10; i++) {
        const once = { key: `k${i}`, query: 'q' };
        const first = await store.createOnce(newRequest({ uploadLeaseMs: LEASE }), once, { open: 100 });
        assert.ok('request' in first);
        stores.advance(LEASE);
        const part = { number: 1, blob: '1-b', etag: 'e', bytes: 10 };
        const [again] = await Promise.all([
          other.createOnce(newRequest({ uploadLeaseMs: LEASE }), once, { open: 100 }),
          store.addPart(first.request.id, part, UNLIMITED),
        ]);
        assert.ok('request' in again && again.isNew);
      }
    });

    test('queued requests: a refused upload stays open; processing ones do not count', async () => {
      const [first, second] = [await arrived(), await arrived()];
      assert.partialDeepStrictEqual(await store.complete(first, NAMED, undefined, 1), { queued: true });
      await assert.rejects(other.complete(second, NAMED, undefined, 1), exceeded('queued', 1, 1));
      assert.equal((await store.find(second))?.state, 'uploading');
      assert.equal((await store.claim({ leaseMs: LEASE, running: [] }))?.request.id, first);
      assert.partialDeepStrictEqual(await other.complete(second, NAMED, undefined, 1), { queued: true });
    });

    test('queued requests: a recording sent in one call has its place from the start', async () => {
      const quota = { queued: 1 };
      const id = await arrived(quota, { uploadLeaseMs: LEASE });
      await assert.rejects(
        store.create(newRequest({ uploadLeaseMs: LEASE }), quota),
        exceeded('queued', 1, 1),
      );
      const parts = await arrived();
      await assert.rejects(store.complete(parts, NAMED, undefined, 1), exceeded('queued', 1, 1));
      assert.partialDeepStrictEqual(await store.complete(id, NAMED), { queued: true });
    });

    test('use: what each owner has now, and its audio of the last 24 hours in all processes', async () => {
      assert.deepEqual(await ledger.use(), new Map());
      const id = await arrived();
      await store.create(newRequest());
      await store.complete(await arrived(), NAMED);
      await store.create(newRequest({ owner: 'ben' }));
      await ledger.addAudio(
        new Map([
          ['anna', 10.5],
          ['carl', 1],
        ]),
      );
      await otherLedger.addAudio(new Map([['anna', 20]]));
      await ledger.addAudio(new Map());
      await store.delete(id, 'anna');
      assert.deepEqual(
        [...(await otherLedger.use())].sort(([a], [b]) => (a < b ? -1 : 1)),
        [
          ['anna', { open: 1, queued: 1, storage: 10, audioSeconds: 30.5 }],
          ['ben', { open: 1, queued: 0, storage: 0, audioSeconds: 0 }],
          ['carl', { open: 0, queued: 0, storage: 0, audioSeconds: 1 }],
        ],
      );
      stores.advance(23 * HOUR);
      await ledger.addAudio(new Map([['anna', 1]]));
      assert.equal(await otherLedger.audioSeconds('anna'), 31.5);
      stores.advance(HOUR);
      assert.equal(await otherLedger.audioSeconds('anna'), 1);
      assert.equal(await otherLedger.audioSeconds('nobody'), 0);
    });

    test('storage: parts in the blob store count before they are recorded, and once', async () => {
      const [first, second] = [await store.create(newRequest()), await store.create(newRequest())];
      const whole = await arrived({}, { uploadLeaseMs: LEASE });
      const bytes = new Map([
        ...[first, second].map(({ id }): [string, number] => [id, 400]),
        [whole, 5],
        ['none', 1],
      ]);
      for (const process of [store, other]) {
        const uploads = await process.noteArrived(bytes);
        const each = { owner: 'anna', bytes: 400, ownerBytes: 810, storageLimit: null };
        assert.deepEqual(
          new Map(uploads.map((upload) => [upload.id, upload])),
          new Map([second, first].map(({ id }) => [id, { id, ...each }])),
        );
      }
      await assert.rejects(store.create(newRequest(), { storage: 810 }), exceeded('storage', 810, 810));
      const parts = [{ number: 1, blob: '1', etag: 'e', bytes: 590 }];
      const limits = { maxRequestBytes: 590, maxOwnerBytes: 1_000 };
      assert.partialDeepStrictEqual(await store.complete(first.id, NAMED, { parts, limits }), {
        queued: true,
      });
      assert.equal((await ledger.use()).get('anna')?.storage, 1_000);
      assert.deepEqual(
        (await store.noteArrived(bytes)).map(({ id }) => id),
        [second.id],
        'it is no longer uploading',
      );
    });

    test('storage: nothing new begins when it is used up', async () => {
      const id = await arrived();
      await store.create(newRequest(), { storage: 11 });
      await assert.rejects(store.create(newRequest(), { storage: 10 }), exceeded('storage', 10, 10));
      const announced = (bytes: number) => store.create(newRequest(), { storage: 30, announcedBytes: bytes });
      await announced(20);
      await assert.rejects(announced(21), exceeded('storage', 30, 10));
      await store.delete(id, 'anna');
      await store.create(newRequest(), { storage: 10 });
    });
  });
}
