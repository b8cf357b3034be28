// Tests for every WebhookStore.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { Outcome, RequestStore, WebhookStore } from '../../src/stores/contracts.ts';
import { DAY, type StoresFactory, type TestStores } from './support/factories.ts';

const LIMITS = { maxRequestBytes: 100, maxOwnerBytes: 1_000 };
const HOLD = 10_000;
const TRACE = { requestId: 'call-7', key: 'k1', traceparent: null };
const FAILURE = { code: 'audio_too_short', detail: 'short', figures: {} } as const;

export function webhookStoreSuite(factory: StoresFactory): void {
  describe(`webhooks in ${factory.name}`, () => {
    let stores: TestStores;
    let requests: RequestStore;
    let store: WebhookStore;
    let other: WebhookStore;

    before(async () => {
      stores = await factory.make();
      ({ requests, webhooks: store } = await stores.open());
      ({ webhooks: other } = await stores.open());
    });
    beforeEach(() => stores.clear());
    after(() => stores.close());

    async function finished(
      webhookUrl: string | null = 'https://example.org/hook',
      outcome: Outcome = { result: '{}' },
    ): Promise<string> {
      const id = randomUUID();
      const request = { id, owner: 'somebody', uploadId: 'u', model: 'm', intervalSeconds: 5, partCount: 1 };
      await requests.create({ ...request, label: 'Monday', webhookUrl, trace: TRACE });
      await requests.addPart(id, { number: 1, blob: 'b', etag: 'e', bytes: 1 }, LIMITS);
      await requests.complete(id, new Map([[1, 'e']]));
      const claim = await requests.claim({ leaseMs: 1_000, running: [] });
      assert.equal(await requests.finish(id, claim?.lease ?? '', outcome), true);
      return id;
    }
    const claim = (from = store, limit = 10) => from.claim({ limit, holdMs: HOLD });

    test('a webhook is due when its request is completed or failed', async () => {
      assert.deepEqual(await claim(), []);
      const createdAt = stores.now();
      const [done, failed] = [await finished(), await finished(undefined, { failure: FAILURE })];
      await finished(null);
      const due = await claim(other);
      const [first] = due;
      assert.ok(first?.id);
      assert.deepEqual(
        due.map(({ requestId, status }) => [requestId, status]).sort(),
        [
          [done, 'completed'],
          [failed, 'failed'],
        ].sort(),
      );
      const { id: _, requestId: _r, status: _s, ...rest } = first;
      const url = 'https://example.org/hook';
      assert.deepEqual(rest, {
        owner: 'somebody',
        label: 'Monday',
        url,
        createdAt,
        attempts: 0,
        trace: TRACE,
      });
    });

    test('each has one sender at a time, and is due again if that sender dies', async () => {
      for (let i = 0; i < 6; i++) await finished();
      const claims = await Promise.all([claim(store, 2), claim(other, 2), claim(store, 2)]);
      const ids = claims.flat().map(({ id }) => id);
      assert.equal(new Set(ids).size, 6);
      assert.deepEqual(await claim(), []);
      await store.remove(ids[0] ?? '');
      stores.advance(HOLD);
      const again = await claim(other);
      assert.deepEqual(again.map(({ id }) => id).sort(), ids.slice(1).sort(), 'under the same ids');
      assert.ok(again.every(({ attempts }) => attempts === 0));
    });

    test('a failed delivery is due again after its delay, with one more attempt', async () => {
      await finished();
      const [first] = await claim();
      await other.retry(first?.id ?? '', { afterMs: 5 * HOLD });
      stores.advance(5 * HOLD - 1);
      assert.deepEqual(await claim(), []);
      stores.advance(1);
      assert.deepEqual(await claim(), [{ ...first, attempts: 1 }]);
    });

    test('a request that expires before it is processed gets one, and is erased after the delivery', async () => {
      await finished();
      const ids = [randomUUID(), randomUUID(), randomUUID()];
      const request = { owner: 'somebody', uploadId: 'u', model: 'm', intervalSeconds: 5, partCount: 1 };
      for (const id of ids) {
        const webhookUrl = id === ids[2] ? null : 'https://example.org/hook';
        await requests.create({ ...request, id, label: 'Monday', webhookUrl });
        if (id === ids[1]) continue;
        await requests.addPart(id, { number: 1, blob: 'b', etag: 'e', bytes: 1 }, LIMITS);
        await requests.complete(id, new Map([[1, 'e']]));
      }
      stores.advance(DAY);
      assert.deepEqual(await requests.expire(), { more: false, requests: 4, unprocessed: 2 });
      const due = await claim();
      assert.deepEqual(
        due.map(({ requestId, status, label }) => [requestId, status, label]).sort(),
        ids
          .slice(0, 2)
          .map((id) => [id, 'expired', 'Monday'])
          .sort(),
      );
      await store.remove(due[0]?.id ?? '');
      const left = await Promise.all(due.map(({ requestId }) => requests.find(requestId)));
      assert.deepEqual(
        left.map((one) => one?.label),
        [null, 'Monday'],
      );
      assert.deepEqual(
        left.map((one) => one?.webhookUrl),
        [null, 'https://example.org/hook'],
      );
    });

    test('they are deleted with their request', async () => {
      const deleted = await finished();
      await finished();
      await requests.delete(deleted, 'somebody');
      assert.equal((await claim()).length, 1);
      stores.advance(DAY);
      await requests.expire();
      assert.deepEqual(await claim(), []);
      await store.retry('gone', { afterMs: 0 });
      await store.remove('gone');
    });
  });
}
