// Tests for every RequestStore.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import { LATE_UPLOAD_MS } from '../../src/stores/blobs.ts';
import type {
  Claim,
  ErasableBlobs,
  NewRequest,
  Part,
  RequestStore,
  StorageUsage,
} from '../../src/stores/contracts.ts';
import { DAY, type StoresFactory, type TestStores } from './support/factories.ts';

const LIMITS = { maxRequestBytes: 100, maxOwnerBytes: 250 };
const LEASE = 10_000;

export function requestStoreSuite(factory: StoresFactory): void {
  describe(`requests in ${factory.name}`, () => {
    let stores: TestStores;
    let store: RequestStore;
    let other: RequestStore;

    before(async () => {
      stores = await factory.make();
      ({ requests: store } = await stores.open());
      ({ requests: other } = await stores.open());
    });
    beforeEach(() => stores.clear());
    after(() => stores.close());

    async function uploading(more: Partial<NewRequest> = {}): Promise<string> {
      const request = {
        id: randomUUID(),
        owner: 'somebody',
        uploadId: randomUUID(),
        model: '5emotions',
        intervalSeconds: 7,
        partCount: 1,
        ...more,
      };
      await store.create(request);
      return request.id;
    }
    function part(number: number, bytes = 10, etag = `etag-${number}`): Part {
      return { number, blob: `${number}-${randomUUID()}`, etag, bytes };
    }
    const named = (...numbers: number[]) => new Map(numbers.map((number) => [number, `etag-${number}`]));
    async function queued(more: Partial<NewRequest> = {}): Promise<string> {
      const id = await uploading(more);
      assert.equal((await store.addPart(id, part(1), LIMITS)).added, true);
      assert.equal(await complete(id, named(1)), true);
      return id;
    }
    /** True if this call queued the request. Its answer must agree with `find` and `parts`. */
    async function complete(id: string, etags: ReadonlyMap<number, string>): Promise<boolean> {
      const answer = await store.complete(id, etags);
      assert.ok('queued' in answer);
      const { queued, request, parts } = answer;
      assert.deepEqual(request, await other.find(id));
      assert.deepEqual(parts, request?.state === 'uploading' ? await other.parts(id) : []);
      if (queued) assert.equal(request?.state, 'queued');
      return queued;
    }
    async function usage(id: string, partNumber: number): Promise<StorageUsage | undefined> {
      const found = await other.findWithUsage(id, partNumber);
      assert.deepEqual(found?.request ?? null, await store.find(id));
      return found?.usage;
    }
    async function assertNotUploading(id: string): Promise<void> {
      const request = await other.find(id);
      assert.notEqual(request?.state, 'uploading');
      assert.deepEqual(await store.addPart(id, part(1), LIMITS), {
        added: false,
        why: 'not_uploading',
        request,
      });
    }
    async function claim(from = store, running: string[] = []): Promise<Claim> {
      const claimed = await from.claim({ leaseMs: LEASE, running });
      assert.ok(claimed, 'there is nothing to claim');
      return claimed;
    }
    const nothingToClaim = async (from = store, running: string[] = []) =>
      assert.equal(await from.claim({ leaseMs: LEASE, running }), null);
    async function completed(result = '{"a":1}'): Promise<string> {
      await queued();
      const { request, lease } = await claim();
      assert.equal(await store.finish(request.id, lease, { result }), true);
      return request.id;
    }
    const stateOf = async (id: string) => (await other.find(id))?.state;

    test('a new request is uploading, expires in 24 hours, and is visible to another process', async () => {
      const request = {
        id: randomUUID(),
        owner: 'somebody',
        uploadId: 'u',
        model: '5emotions',
        intervalSeconds: 7,
        partCount: 2,
      };
      const created = await store.create(request);
      const createdAt = stores.now();
      const expected = {
        ...request,
        channels: 'mix',
        label: null,
        webhookUrl: null,
        durationSeconds: null,
        state: 'uploading',
        progress: 0,
        createdAt,
        expiresAt: createdAt + DAY,
      };
      assert.deepEqual(created, expected);
      assert.deepEqual(await other.find(request.id), expected);
      assert.equal(await other.find(randomUUID()), null);
    });

    test('channels, label and webhook are stored, and erased with the request', async () => {
      const said = { channels: 'separate', label: 'Monday', webhookUrl: 'https://example.org/h' } as const;
      const id = await queued(said);
      const found = await other.find(id);
      assert.deepEqual(
        { channels: found?.channels, label: found?.label, webhookUrl: found?.webhookUrl },
        said,
      );
      const { request, lease } = await claim();
      assert.equal(request.channels, 'separate');
      await store.finish(id, lease, { result: '{}' }, 61.5);
      assert.equal((await other.find(id))?.durationSeconds, 61.5);
      stores.advance(DAY);
      await store.expire();
      assert.doesNotMatch(JSON.stringify(await other.find(id)), /separate|Monday|example|61\.5/);
    });

    describe('with an idempotency key', () => {
      const once = { key: 'key', query: 'query' };
      const make = (more: Partial<NewRequest> = {}): NewRequest => ({
        id: randomUUID(),
        owner: 'somebody',
        uploadId: randomUUID(),
        model: '5emotions',
        intervalSeconds: 7,
        partCount: 1,
        ...more,
      });
      const made = async (request: NewRequest, idempotency = once, from = store) => {
        const answer = await from.createOnce(request, idempotency);
        return 'request' in answer ? [answer.request.id, answer.isNew] : answer.inUse;
      };

      test('concurrent calls with one key create one request', async () => {
        const calls = Array.from({ length: 10 }, (_, i) => made(make(), once, i % 2 ? store : other));
        const answers = await Promise.all(calls);
        assert.equal(new Set(answers.map(([id]) => id)).size, 1);
        assert.equal(answers.filter(([, isNew]) => isNew === true).length, 1);
        assert.deepEqual(await store.countByState(), { uploading: 1 });
      });

      test('another query is rejected; another owner can use the same key', async () => {
        await made(make());
        assert.equal(await made(make(), { ...once, query: 'other' }), 'other_query');
        const theirs = make({ owner: 'somebody else' });
        assert.deepEqual(await made(theirs), [theirs.id, true]);
      });

      test('the key is free again once the request is deleted or expired, swept or not', async () => {
        const [first, second, third] = [make(), make(), make()];
        await made(first);
        await store.delete(first.id, 'somebody');
        assert.deepEqual(await made(second), [second.id, true]);
        stores.advance(DAY);
        assert.deepEqual(await made(third), [third.id, true]);
        assert.equal(await stateOf(second.id), 'expired');
      });

      test('a running call blocks its key; an interrupted one is deleted', async () => {
        const [first, second, third] = [make(), make(), make()].map((one) => ({
          ...one,
          uploadLeaseMs: LEASE,
        }));
        assert.ok(first && second && third);
        await made(first);
        assert.equal(await made(second), 'still_running');
        stores.advance(LEASE - 1);
        await other.renewUpload(first.id, { leaseMs: LEASE });
        stores.advance(LEASE - 1);
        assert.equal(await made(second), 'still_running');
        stores.advance(2);
        assert.deepEqual(await made(second), [second.id, true]);
        assert.equal(await stateOf(first.id), undefined);
        await store.addPart(second.id, part(1), LIMITS);
        await store.complete(second.id, named(1));
        stores.advance(10 * LEASE);
        await store.expire();
        assert.deepEqual(await made(third), [second.id, false], 'a completed upload has no lease');
        const lost = await uploading({ uploadLeaseMs: LEASE });
        const slow = await uploading();
        stores.advance(LEASE + 1);
        await store.expire();
        assert.deepEqual([await stateOf(lost), await stateOf(slow)], [undefined, 'uploading']);
      });
    });

    test('a list has the requests of one owner, newest first, in pages, optionally of one state', async () => {
      const ids: string[] = [];
      for (let i = 0; i < 5; i++) {
        ids.unshift(await uploading({ label: `number ${i}`, partCount: 2 }));
        stores.advance(i % 2); // some in the same millisecond
      }
      const waiting = await queued();
      await uploading({ owner: 'somebody else' });
      await store.delete(await uploading(), 'somebody');
      await store.addPart(ids[0] ?? '', part(1), LIMITS);
      const all = await other.list('somebody', { limit: 10 });
      const byTime = (a: (typeof all)[0], b: (typeof all)[0]) =>
        b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1);
      assert.deepEqual(all, all.toSorted(byTime));
      assert.deepEqual(all.map(({ id }) => id).sort(), [...ids, waiting].sort());
      assert.equal(all.find(({ id }) => id === ids[0])?.progress, 0.5);
      assert.equal(all.find(({ id }) => id === ids[0])?.label, 'number 4');
      const pages = [];
      for (let after: (typeof all)[0] | undefined; ; ) {
        const page = await store.list('somebody', { limit: 4, after });
        if (page.length === 0) break;
        pages.push(page.length);
        after = page.at(-1);
      }
      assert.deepEqual(pages, [4, 2]);
      const only = await store.list('somebody', { limit: 10, state: 'queued' });
      assert.deepEqual(
        only.map(({ id }) => id),
        [waiting],
      );
      stores.advance(DAY);
      assert.deepEqual(await store.list('somebody', { limit: 10 }), []);
      await store.expire();
      const past = await store.list('somebody', { limit: 10, state: 'expired' });
      assert.deepEqual(new Set(past.map(({ state }) => state)), new Set(['expired']));
      assert.equal(past.length, 6);
      stores.advance(DAY);
      assert.deepEqual(await store.list('somebody', { limit: 10, state: 'expired' }), []);
    });

    describe('parts', () => {
      test('are returned in order, and count as progress', async () => {
        const id = await uploading({ partCount: 4 });
        const [first, second] = [part(1), part(2)];
        await store.addPart(id, second, LIMITS);
        await other.addPart(id, first, LIMITS);
        assert.deepEqual(await store.parts(id), [first, second]);
        assert.equal((await store.find(id))?.progress, 0.5);
      });

      test('that are sent again replace the first, whose blob is returned', async () => {
        const id = await uploading();
        const before = part(1);
        const now = part(1, 20, 'other');
        assert.deepEqual(await store.addPart(id, before, LIMITS), { added: true, replaced: null });
        assert.deepEqual(await store.addPart(id, now, LIMITS), { added: true, replaced: before.blob });
        assert.deepEqual(await store.parts(id), [now]);
      });

      test('are limited in total; a part that is sent again counts once', async () => {
        const id = await uploading({ partCount: 2 });
        await store.addPart(id, part(1, 60), LIMITS);
        assert.equal((await usage(id, 2))?.requestBytes, 60);
        assert.equal((await usage(id, 1))?.requestBytes, 0);
        const refused = await store.addPart(id, part(2, 41), LIMITS);
        assert.deepEqual(refused, { added: false, why: 'file_too_large' });
        assert.equal((await store.addPart(id, part(1, 100), LIMITS)).added, true);
        assert.equal((await store.addPart(id, part(1, 59), LIMITS)).added, true);
        assert.equal((await store.addPart(id, part(2, 41), LIMITS)).added, true);
      });

      test('are limited for their owner over all requests', async () => {
        const first = await uploading();
        const second = await uploading();
        const third = await uploading({ partCount: 2 });
        await store.addPart(await uploading({ owner: 'somebody else' }), part(1, 100), LIMITS);
        for (const id of [first, second]) await store.addPart(id, part(1, 100), LIMITS);
        await store.addPart(third, part(1, 30), LIMITS);
        assert.deepEqual(await usage(third, 1), { requestBytes: 0, ownerBytes: 200 });
        assert.deepEqual(await usage(third, 2), { requestBytes: 30, ownerBytes: 230 });
        const refused = await store.addPart(third, part(2, 21), LIMITS);
        assert.deepEqual(refused, { added: false, why: 'storage_limit', usedBytes: 230 });
        assert.equal((await store.addPart(third, part(1, 50), LIMITS)).added, true, 'replaces its 30');
        await store.noteErased([first]);
        await store.delete(second, 'somebody');
        assert.deepEqual(await usage(third, 2), { requestBytes: 50, ownerBytes: 50 });
        assert.equal((await store.addPart(third, part(2, 50), LIMITS)).added, true);
      });

      test('can be recorded all at once by complete, replacing earlier ones, within the same limits', async () => {
        const id = await uploading({ partCount: 3 });
        await store.addPart(await uploading(), part(1, 90), LIMITS);
        await store.addPart(await uploading(), part(1, 70), LIMITS);
        await store.addPart(id, part(2, 50), LIMITS);
        const record = (parts: Part[], to = id) => other.complete(to, new Map(), { parts, limits: LIMITS });
        const tooLarge = await record([part(1, 60), part(2, 41)]);
        assert.deepEqual(tooLarge, { added: false, why: 'file_too_large' });
        const tooMuch = await record([part(1, 50), part(2, 41)]);
        assert.deepEqual(tooMuch, { added: false, why: 'storage_limit', usedBytes: 160 });
        assert.equal((await store.parts(id)).length, 1, 'a rejected call changes nothing');
        const all = [part(1, 50), part(3, 40)];
        const recorded = await record(all);
        assert.deepEqual(recorded, { queued: false, request: await store.find(id), parts: all });
        assert.deepEqual(await store.parts(id), all);
        assert.deepEqual(await usage(id, 9), { requestBytes: 90, ownerBytes: 250 });
        const three = [part(1), part(2), part(3)];
        const limits = { parts: three, limits: LIMITS };
        const completed = await other.complete(id, named(1, 2, 3), limits);
        assert.deepEqual(completed, { queued: true, request: await store.find(id), parts: [] });
        assert.deepEqual(await store.parts(id), three);
        const closed = await queued({ owner: 'somebody else' });
        const before = await store.parts(closed);
        assert.deepEqual(await record(all, closed), {
          queued: false,
          request: await store.find(closed),
          parts: [],
        });
        assert.deepEqual(await store.parts(closed), before);
      });

      test('cannot change once the request is queued', async () => {
        const id = await queued();
        await assertNotUploading(id);
        await assertNotUploading(randomUUID());
        assert.equal(await usage(randomUUID(), 1), undefined);
      });

      test('are deleted with their blobs; the request stays', async () => {
        const id = await completed();
        await store.noteErased([id]);
        assert.deepEqual(await store.parts(id), []);
        assert.equal(await stateOf(id), 'completed');
        assert.deepEqual(await store.outcome(id), { result: '{"a":1}' });
      });
    });

    describe('completing', () => {
      test('needs exactly the parts that arrived, with their ETags', async () => {
        const id = await uploading({ partCount: 2 });
        await store.addPart(id, part(1), LIMITS);
        assert.equal(await complete(id, named(1)), false);
        assert.equal(await complete(id, named(1, 2)), false);
        await store.addPart(id, part(2), LIMITS);
        assert.equal(await complete(id, named(1)), false);
        assert.equal(await complete(id, new Map([...named(1), [2, 'wrong']])), false);
        assert.equal(await complete(id, named(1, 2, 3)), false);
        assert.equal(await stateOf(id), 'uploading');
        assert.equal(await complete(id, named(1, 2)), true);
        assert.equal(await complete(id, named(1, 2)), false, 'a second time changes nothing');
        assert.equal(await stateOf(id), 'queued');
      });

      test('ignores the case of ETags, but stores them unchanged: some object stores use capitals', async () => {
        const id = await uploading();
        await store.addPart(id, part(1, 10, 'D41D8CD9'), LIMITS);
        assert.equal(await complete(id, new Map([[1, 'd41d8cd9']])), true);
        assert.equal((await store.parts(id))[0]?.etag, 'D41D8CD9');
      });

      test('needs every part that arrived to be named', async () => {
        const id = await uploading({ partCount: 1 });
        for (const number of [1, 2]) await store.addPart(id, part(number), LIMITS);
        assert.equal(await complete(id, named(1)), false);
      });

      test('accepts hundreds of parts', async () => {
        const numbers = Array.from({ length: 300 }, (_, i) => i + 1);
        const id = await uploading({ partCount: numbers.length });
        for (const number of numbers) await store.addPart(id, part(number, 0), LIMITS);
        assert.equal(await complete(id, named(...numbers)), true);
      });
    });

    describe('claiming', () => {
      test('follows the order of the queue, and gives each request to one worker', async () => {
        const late = await uploading();
        const ids: string[] = [];
        for (let i = 0; i < 3; i++) {
          stores.advance(1);
          ids.push(await queued());
        }
        stores.advance(1);
        await store.addPart(late, part(1), LIMITS);
        await store.complete(late, named(1));
        const claims = [await claim(), await claim(other), await claim(), await claim(other)];
        assert.deepEqual(
          claims.map(({ request }) => request.id),
          [...ids, late],
        );
        assert.equal(new Set(claims.map(({ lease }) => lease)).size, 4);
        await nothingToClaim();
      });

      test('lets owners take turns, regardless of who queued more or earlier', async () => {
        const queue = async (owner: string, count: number) => {
          for (let i = 0; i < count; i++) {
            stores.advance(1);
            await queued({ owner });
          }
        };
        const served = async (count: number) => {
          const owners: string[] = [];
          while (owners.length < count) {
            const { request, lease } = await claim(owners.length % 2 ? store : other);
            await store.finish(request.id, lease, { result: '{}' });
            owners.push(request.owner);
          }
          return owners.join(' ');
        };
        await queue('a', 20);
        assert.equal(await served(3), 'a a a');
        await queue('b', 3);
        assert.equal(await served(4), 'a b a b');
        await queue('c', 1);
        assert.equal(await served(5), 'a b c a a');
        await queue('c', 1);
        assert.equal(await served(3), 'a c a');
      });

      test('lets owners take turns while long requests of one of them are running', async () => {
        for (let i = 0; i < 6; i++) await queued({ owner: 'a' });
        await claim();
        await claim();
        stores.advance(1);
        const theirs = await queued({ owner: 'b' });
        stores.advance(1);
        assert.deepEqual([(await claim()).request.owner, (await claim()).request.id], ['a', theirs]);
      });

      test('leaves out owners who have enough running', async () => {
        for (const owner of ['a', 'a', 'b']) await queued({ owner });
        const next = (...exceptOwners: string[]) =>
          store.claim({ leaseMs: LEASE, running: [], exceptOwners });
        assert.equal((await next('a'))?.request.owner, 'b');
        assert.equal(await next('a', 'b'), null);
        assert.equal((await next())?.request.owner, 'a');
      });

      test('concurrently gives each request to one worker', async () => {
        const ids = [];
        for (let i = 0; i < 10; i++) ids.push(await queued());
        const claims = await Promise.all(
          Array.from({ length: 20 }, (_, i) =>
            (i % 2 ? store : other).claim({ leaseMs: LEASE, running: [] }),
          ),
        );
        const given = claims.filter((found) => found !== null).map(({ request }) => request.id);
        assert.deepEqual(given.sort(), ids.sort());
      });

      test('returns the whole request', async () => {
        const id = await queued();
        const { request, failedAttempts } = await claim();
        assert.deepEqual(request, await other.find(id));
        assert.equal(request.state, 'processing');
        assert.equal(failedAttempts, 0);
      });

      test('takes over an expired lease, and counts a failed attempt', async () => {
        const id = await queued();
        const first = await claim();
        stores.advance(LEASE);
        await nothingToClaim(other);
        stores.advance(1);
        const second = await claim(other);
        assert.deepEqual([second.request.id, second.failedAttempts], [id, 1]);
        assert.notEqual(second.lease, first.lease);
        stores.advance(LEASE + 1);
        assert.equal((await claim()).failedAttempts, 2);
      });

      test('takes an expired lease before requests queued later', async () => {
        const id = await queued();
        await claim();
        stores.advance(1);
        await queued();
        stores.advance(LEASE + 1);
        assert.equal((await claim()).request.id, id);
      });

      test('never takes over a lease that this process is running, however late it is', async () => {
        const { id } = await store.find(await queued()).then((found) => found ?? assert.fail());
        const { lease } = await claim();
        stores.advance(100 * LEASE);
        await nothingToClaim(store, ['another', lease]);
        assert.equal(await store.renew(id, lease, { leaseMs: LEASE, progress: 0.5 }), true);
        await nothingToClaim(other);
      });
    });

    describe('a lease', () => {
      test('lasts while it is renewed, and progress is visible', async () => {
        const id = await queued();
        const { lease } = await claim();
        for (const progress of [0.25, 0.5, 0.75]) {
          stores.advance(LEASE - 1);
          assert.equal(await store.renew(id, lease, { leaseMs: LEASE, progress }), true);
          await nothingToClaim(other);
          assert.equal((await other.find(id))?.progress, progress);
        }
      });

      test('is required to change the request', async () => {
        const id = await queued();
        const { lease } = await claim();
        assert.equal(await other.renew(id, 'another', { leaseMs: LEASE, progress: 0.9 }), false);
        assert.equal(await other.requeue(id, 'another', { countAttempt: true }), false);
        assert.equal(await other.finish(id, 'another', { result: '{}' }), false);
        assert.deepEqual(await store.find(id).then((found) => [found?.state, found?.progress]), [
          'processing',
          0,
        ]);
        assert.equal(await other.finish(id, lease, { result: '{}' }), true);
      });

      test('that was taken over changes nothing', async () => {
        const id = await queued();
        const { lease: late } = await claim();
        stores.advance(LEASE + 1);
        const { lease } = await claim(other);
        assert.equal(await store.renew(id, late, { leaseMs: LEASE, progress: 0.9 }), false);
        assert.equal(await store.requeue(id, late, { countAttempt: true }), false);
        assert.equal(await store.finish(id, late, { result: 'late' }), false);
        assert.equal(await store.outcome(id), null);
        assert.equal(await other.finish(id, lease, { result: 'right' }), true);
        assert.deepEqual(await store.outcome(id), { result: 'right' });
      });
    });

    describe('requeueing', () => {
      test('counts a failed attempt only if the worker says so', async () => {
        const id = await queued();
        const first = await claim();
        await store.renew(id, first.lease, { leaseMs: LEASE, progress: 0.5 });
        assert.equal(await store.requeue(id, first.lease, { countAttempt: false }), true);
        const back = await other.find(id);
        assert.deepEqual([back?.state, back?.progress], ['queued', 0]);
        const second = await claim(other);
        assert.equal(second.failedAttempts, 0);
        assert.equal(await other.requeue(id, second.lease, { countAttempt: true }), true);
        assert.equal((await claim()).failedAttempts, 1);
        assert.equal(await store.requeue(id, second.lease, { countAttempt: true }), false);
      });

      test('for later leaves it out until then, even for other workers; the next one goes first', async () => {
        const id = await queued();
        stores.advance(1);
        const next = await queued();
        const first = await claim();
        await store.requeue(id, first.lease, { countAttempt: true, afterMs: 5_000 });
        assert.equal(await stateOf(id), 'queued');
        assert.equal((await claim(other)).request.id, next);
        stores.advance(4_999);
        await nothingToClaim();
        stores.advance(1);
        const second = await claim();
        assert.deepEqual([second.request.id, second.failedAttempts, second.postponed], [id, 1, 0]);
        await store.requeue(id, second.lease, { countAttempt: false, afterMs: 1_000 });
        stores.advance(1_000);
        const third = await claim(other);
        assert.deepEqual([third.failedAttempts, third.postponed], [1, 1]);
      });

      test('keeps the place in the queue', async () => {
        const id = await queued();
        stores.advance(1);
        await queued();
        const { lease } = await claim();
        stores.advance(1);
        await store.requeue(id, lease, { countAttempt: false });
        assert.equal((await claim()).request.id, id);
      });
    });

    describe('a finished request', () => {
      test('has its result, and does not change again', async () => {
        const id = await queued();
        const { lease } = await claim();
        const result = JSON.stringify({
          emotions: Array.from({ length: 5_000 }, (_, t) => ({ t, emotion: 'sad' })),
        });
        assert.equal(await store.outcome(id), null);
        assert.equal(await store.finish(id, lease, { result }), true);
        const found = await other.find(id);
        assert.deepEqual([found?.state, found?.progress], ['completed', 1]);
        assert.equal(await store.finish(id, lease, { result: 'again' }), false);
        assert.equal(await store.requeue(id, lease, { countAttempt: false }), false);
        assert.equal(await store.renew(id, lease, { leaseMs: LEASE, progress: 0 }), false);
        assert.equal(await complete(id, named(1)), false);
        stores.advance(2 * LEASE);
        await nothingToClaim();
        assert.deepEqual(await other.outcome(id), { result });
      });

      test('that failed has its failure with the figures', async () => {
        const id = await queued();
        const { lease } = await claim();
        const failure = { code: 'audio_too_short' as const, detail: 'short', figures: { min_seconds: 5 } };
        assert.equal(await store.finish(id, lease, { failure }), true);
        assert.equal(await stateOf(id), 'failed');
        assert.deepEqual(await other.outcome(id), { failure });
      });
    });

    describe('a large result', () => {
      const chunk = (number: number, text: string) => ({ form: 'detailed', number, text }) as const;

      test('is written and read in chunks, and those of an earlier attempt are gone', async () => {
        const id = await queued();
        const { lease: late } = await claim();
        assert.equal(await store.addResultChunk(id, late, chunk(0, 'early')), true);
        assert.equal(await store.addResultChunk(id, late, chunk(2, 'early')), true);
        assert.equal(await store.requeue(id, late, { countAttempt: false }), true);
        const { lease } = await claim();
        assert.equal(await other.addResultChunk(id, late, chunk(1, 'late')), false);
        for (const text of ['lost answer', 'a']) {
          assert.equal(await store.addResultChunk(id, lease, chunk(0, text)), true);
        }
        assert.equal(await store.addResultChunk(id, lease, chunk(1, 'b')), true);
        assert.equal(await other.resultChunk(id, 'detailed', 0), null, 'not before it is finished');
        assert.equal(await store.finish(id, lease, { chunked: true }), true);
        assert.equal(await stateOf(id), 'completed');
        assert.deepEqual(await other.outcome(id), { chunked: true });
        const read = (number: number) => other.resultChunk(id, 'detailed', number);
        assert.deepEqual([await read(0), await read(1), await read(2)], ['a', 'b', null]);
        assert.equal(await other.resultChunk(id, 'plain', 0), null);
      });

      test('is erased with its request, in batches by the sweep', async () => {
        for (const end of ['deleted', 'expired']) {
          const id = await queued();
          const { lease } = await claim();
          for (let number = 0; number < 25; number++) {
            await store.addResultChunk(id, lease, chunk(number, 'x'));
          }
          await store.finish(id, lease, { chunked: true });
          assert.equal(await other.resultChunk(id, 'detailed', 24), 'x');
          if (end === 'deleted') await store.delete(id, 'somebody');
          else stores.advance(DAY);
          assert.equal(await other.resultChunk(id, 'detailed', 24), null);
          if (end === 'expired') assert.ok((await store.expire()).more, 'more than one batch');
          while ((await store.expire()).more);
          assert.equal(await store.outcome(id), null);
        }
      });
    });

    describe('24 hours after its creation a request', () => {
      test('is expired at once, before the sweep, and cannot change', async () => {
        const done = await completed();
        const open = await uploading();
        const waiting = await queued();
        const { lease } = await claim();
        stores.advance(DAY - 1);
        assert.equal(await stateOf(done), 'completed');
        stores.advance(1);
        for (const id of [done, open, waiting]) {
          assert.equal(await stateOf(id), 'expired');
          assert.equal(await store.outcome(id), null);
        }
        await assertNotUploading(open);
        assert.equal(await complete(open, named(1)), false);
        assert.equal(await store.renew(waiting, lease, { leaseMs: LEASE, progress: 1 }), false);
        assert.equal(await store.requeue(waiting, lease, { countAttempt: true }), false);
        assert.equal(await store.finish(waiting, lease, { result: 'late' }), false);
        await nothingToClaim();
        assert.deepEqual(await store.needingBlobs([done, open, waiting]), []);
      });

      test('is swept to a tombstone of id, owner and times, which goes after another 24 hours', async () => {
        const id = await completed();
        const waiting = await queued({ uploadId: 'the upload', model: 'the model' });
        stores.advance(DAY / 2);
        const young = await uploading();
        stores.advance(DAY / 2);
        await store.expire();
        assert.equal(await stateOf(young), 'uploading');
        assert.equal(await store.outcome(id), null);
        const left = await other.find(waiting);
        assert.deepEqual([left?.id, left?.owner, left?.state], [waiting, 'somebody', 'expired']);
        assert.ok(!JSON.stringify(left).includes('the '));
        assert.deepEqual(await store.parts(waiting), []);
        assert.equal((await usage(young, 1))?.ownerBytes, 0);
        assert.deepEqual(await store.countByState(), { uploading: 1, expired: 2 });
        stores.advance(DAY - 1);
        await store.expire();
        assert.equal(await stateOf(id), 'expired');
        stores.advance(1);
        assert.equal(await stateOf(id), undefined, 'even before the sweep');
        await store.expire();
        assert.deepEqual(await store.countByState(), { expired: 1 });
      });
    });

    test('the sweep works in batches, and other calls have their turn in between', async () => {
      const ids: string[] = [];
      for (let i = 0; i < 4; i++) ids.push(await completed());
      for (let i = 0; i < 3; i++) ids.push(await uploading());
      stores.advance(DAY);
      const young = await uploading();
      const left: number[] = [];
      for (let more = true; more; ) {
        ({ more } = await store.expire({ limit: 3 }));
        left.push(7 - ((await other.countByState()).expired ?? 0));
      }
      assert.deepEqual(left, [4, 1, 0]);
      for (const id of ids) assert.equal(await stateOf(id), 'expired');
      assert.equal(await stateOf(young), 'uploading');
      stores.advance(DAY - 1);
      await store.delete(young, 'somebody');
      stores.advance(1);
      while ((await store.expire({ limit: 3 })).more);
      assert.deepEqual(await store.countByState(), {}, 'tombstones go in batches too');
    });

    describe('deleting', () => {
      test('removes a request in any state', async () => {
        const open = await uploading();
        const waiting = await queued();
        const { lease } = await claim();
        const done = await completed();
        for (const id of [open, waiting, done]) {
          assert.equal(await other.delete(id, 'somebody'), 'deleted');
          assert.equal(await store.find(id), null);
          assert.deepEqual(await store.parts(id), []);
          assert.equal(await store.outcome(id), null);
        }
        assert.equal(await store.renew(waiting, lease, { leaseMs: LEASE, progress: 0.5 }), false);
        assert.equal(await store.finish(waiting, lease, { result: 'late' }), false);
        assert.equal((await store.addPart(open, part(1), LIMITS)).added, false);
        stores.advance(2 * LEASE);
        await nothingToClaim();
        assert.deepEqual(await store.needingBlobs([open, waiting, done]), []);
        assert.deepEqual(await store.countByState(), {});
      });

      test('twice is recognised until 24 hours after the request would have expired', async () => {
        const id = await completed();
        await store.delete(id, 'somebody');
        assert.equal(await other.delete(id, 'somebody'), 'already');
        stores.advance(2 * DAY - 1);
        await store.expire();
        assert.equal(await store.find(id), null, 'never reported as expired');
        assert.equal(await other.delete(id, 'somebody'), 'already');
        stores.advance(1);
        assert.equal(await other.delete(id, 'somebody'), 'unknown', 'even before the sweep');
        await store.expire();
        assert.equal(await other.delete(id, 'somebody'), 'unknown');
      });

      test('is allowed only for the owner', async () => {
        const id = await completed();
        assert.equal(await store.delete(id, 'somebody else'), 'unknown');
        assert.equal(await stateOf(id), 'completed');
        await store.delete(id, 'somebody');
        assert.equal(await store.delete(id, 'somebody else'), 'unknown');
        assert.equal(await store.delete(randomUUID(), 'somebody'), 'unknown');
      });
    });

    test('a failed transaction rolls back only itself, not concurrent calls', async () => {
      const broken = { ...part(1), etag: null as unknown as string };
      const [failing, waiting] = [await uploading({ partCount: 2 }), await uploading()];
      const calls = Array.from({ length: 5 }, async () => {
        await assert.rejects(store.addPart(failing, broken, LIMITS));
        await store.addPart(waiting, part(1), LIMITS);
        return uploading();
      });
      const created = await Promise.all(calls);
      for (const id of created) assert.equal(await stateOf(id), 'uploading');
      assert.deepEqual(await other.parts(failing), []);
      assert.equal((await other.parts(waiting)).length, 1);
      assert.deepEqual(await usage(waiting, 9), { requestBytes: 10, ownerBytes: 10 });
    });

    test('only unfinished requests need their blobs', async () => {
      const open = await uploading();
      const done = await completed();
      const processing = await queued();
      await claim();
      const waiting = await queued();
      const needing = await store.needingBlobs([open, done, processing, waiting, randomUUID()]);
      assert.deepEqual(needing.sort(), [open, processing, waiting].sort());
      assert.deepEqual(await store.needingBlobs([]), []);
    });

    describe('blobs', () => {
      const toErase = async (after?: ErasableBlobs) =>
        (await other.blobsToErase({ limit: 100, after })).map(({ id }) => id);

      test('are erased when their request is over, and once more when its upload URLs have ended', async () => {
        const done = await completed();
        const failed = await queued();
        const { lease } = await claim();
        await store.finish(failed, lease, { failure: { code: 'internal', detail: '', figures: {} } });
        const deleted = await queued();
        await store.delete(deleted, 'somebody');
        const living = [await queued(), await uploading()];
        await claim();
        const over = [done, failed, deleted];
        assert.deepEqual((await toErase()).sort(), over.toSorted());
        await store.noteErased(over);
        assert.deepEqual(await toErase(), []);
        stores.advance(LATE_UPLOAD_MS - 1);
        assert.deepEqual(await toErase(), []);
        stores.advance(1);
        assert.deepEqual((await toErase()).sort(), over.toSorted());
        await store.noteErased(over);
        stores.advance(DAY - LATE_UPLOAD_MS - 1);
        assert.deepEqual(await toErase(), [], 'no URL is left');
        stores.advance(1);
        assert.deepEqual(
          (await toErase()).sort(),
          living.toSorted(),
          'they have expired, even before expire',
        );
        await store.expire();
        assert.deepEqual((await toErase()).sort(), living.toSorted());
        await store.noteErased(living);
        stores.advance(DAY - 1);
        assert.deepEqual(await toErase(), []);
      });

      test('are erased later when new URLs were given out', async () => {
        const [open, done] = [await uploading(), await completed()];
        await store.noteErased([done]);
        stores.advance(LATE_UPLOAD_MS);
        await store.noteErased([done]);
        for (const id of [open, done]) await store.noteUrls(id);
        stores.advance(LATE_UPLOAD_MS - 1);
        assert.deepEqual(await toErase(), []);
        assert.deepEqual(await other.arrivingUploads({ limit: 9, after: '' }), [open]);
        await store.delete(open, 'somebody');
        assert.deepEqual(await toErase(), [open]);
        await store.noteErased([open]);
        stores.advance(1);
        assert.deepEqual((await toErase()).sort(), [open, done].sort());
        await store.noteErased([open, done]);
        stores.advance(DAY / 2);
        assert.deepEqual(await toErase(), []);
      });

      test('are erased in batches, of which one that fails does not stop the next', async () => {
        const ids = [];
        for (let i = 0; i < 5; i++) {
          ids.push(await completed());
          stores.advance(i % 2);
        }
        const first = await store.blobsToErase({ limit: 2 });
        const second = await store.blobsToErase({ limit: 2, after: first.at(-1) });
        const third = await store.blobsToErase({ limit: 2, after: second.at(-1) });
        const found = [...first, ...second, ...third].map(({ id }) => id);
        assert.deepEqual(found.toSorted(), ids.toSorted());
        assert.deepEqual([first.length, second.length, third.length], [2, 2, 1]);
      });

      test('may be arriving while the upload URLs of an open upload are valid', async () => {
        const ids = [await uploading(), await uploading(), await uploading()].sort();
        await uploading({ uploadLeaseMs: LEASE });
        await queued();
        const [one = '', two = '', three = ''] = ids;
        assert.deepEqual(await other.arrivingUploads({ limit: 2, after: '' }), [one, two]);
        assert.deepEqual(await other.arrivingUploads({ limit: 2, after: two }), [three]);
        stores.advance(LATE_UPLOAD_MS);
        assert.deepEqual(await other.arrivingUploads({ limit: 2, after: '' }), []);
      });
    });

    test('states are counted', async () => {
      await completed();
      await queued();
      await claim();
      await queued();
      await uploading();
      const counts = { uploading: 1, queued: 1, processing: 1, completed: 1 };
      assert.deepEqual(await store.countByState(), counts);
      await store.checkWritable();
      assert.deepEqual(await other.countByState(), counts);
    });
  });
}
