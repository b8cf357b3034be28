import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { NewRequest, RequestStore } from '../../src/asynch/stores/request-store.ts';
import { Clock, type Opened, requestStores } from './support/stores.ts';

const DAY = 86_400_000;
const LIMITS = { maxTotalBytes: 100 };

for (const { name, fresh } of requestStores) {
  describe(`requests in ${name}`, () => {
    let clock: Clock;
    let store: RequestStore;
    let other: RequestStore;
    let opened: Opened<RequestStore>;

    beforeEach(async () => {
      clock = new Clock();
      opened = await fresh(clock);
      store = opened.open();
      other = opened.open();
    });
    afterEach(() => opened.close());

    function make(more: Partial<NewRequest> = {}): NewRequest {
      return {
        id: randomUUID(),
        owner: 'somebody',
        uploadId: randomUUID(),
        model: '5emotions',
        intervalSeconds: 7,
        partCount: 2,
        createdAt: clock.ms,
        expiresAt: clock.ms + DAY,
        ...more,
      };
    }
    async function created(more: Partial<NewRequest> = {}): Promise<string> {
      const request = make(more);
      await store.create(request);
      return request.id;
    }
    const part = (number: number, bytes = 10, etag = `etag-${number}`) => ({
      number,
      blob: `${number}-${randomUUID()}`,
      etag,
      bytes,
    });
    const named = (...numbers: number[]) => new Map(numbers.map((number) => [number, `etag-${number}`]));
    async function queued(): Promise<string> {
      const id = await created({ partCount: 1 });
      await store.addPart(id, part(1), LIMITS);
      assert.equal(await store.queue(id, named(1)), true);
      return id;
    }
    async function processing(lease = 'mine'): Promise<string> {
      const id = await queued();
      assert.equal(await store.begin(id, lease), true);
      return id;
    }

    test('a new request is uploading, and another process sees it whole', async () => {
      const request = make();
      await store.create(request);
      assert.deepEqual(await other.find(request.id), { ...request, state: 'uploading', progress: 0 });
      assert.equal(await other.find(randomUUID()), null);
    });

    test('parts come back in order, and progress counts them', async () => {
      const id = await created({ partCount: 4 });
      const [first, second] = [part(1), part(2)];
      await store.addPart(id, second, LIMITS);
      await store.addPart(id, first, LIMITS);
      assert.deepEqual(await store.parts(id), [first, second]);
      assert.equal((await store.find(id))?.progress, 0.5);
    });

    test('a part that comes again takes the place of the first, which is named', async () => {
      const id = await created();
      const before = part(1);
      const now = part(1, 20, 'other');
      assert.deepEqual(await store.addPart(id, before, LIMITS), { added: true, replaced: null });
      assert.deepEqual(await store.addPart(id, now, LIMITS), { added: true, replaced: before.blob });
      assert.deepEqual(await store.parts(id), [now]);
    });

    test('the sum of the parts is limited; a part that comes again counts once', async () => {
      const id = await created();
      await store.addPart(id, part(1, 60), LIMITS);
      assert.equal(await store.bytesBeside(id, 2), 60);
      assert.equal(await store.bytesBeside(id, 1), 0);
      assert.deepEqual(await store.addPart(id, part(2, 41), LIMITS), { added: false, why: 'too_large' });
      assert.equal((await store.addPart(id, part(1, 100), LIMITS)).added, true);
      assert.equal((await store.addPart(id, part(1, 59), LIMITS)).added, true);
      assert.equal((await store.addPart(id, part(2, 41), LIMITS)).added, true);
    });

    test('it is queued only with exactly the parts that arrived', async () => {
      const id = await created();
      await store.addPart(id, part(1), LIMITS);
      assert.equal(await store.queue(id, named(1)), false);
      assert.equal(await store.queue(id, named(1, 2)), false);
      await store.addPart(id, part(2), LIMITS);
      assert.equal(await store.queue(id, named(1)), false);
      assert.equal(await store.queue(id, new Map([...named(1), [2, 'wrong']])), false);
      assert.equal((await store.find(id))?.state, 'uploading');
      assert.equal(await store.queue(id, named(1, 2)), true);
      assert.equal(await store.queue(id, named(1, 2)), false, 'a second time changes nothing');
      assert.equal((await other.find(id))?.state, 'queued');
    });

    test('parts no longer change once it is queued', async () => {
      const id = await queued();
      assert.deepEqual(await store.addPart(id, part(1), LIMITS), { added: false, why: 'not_uploading' });
    });

    test('many parts are queued in one step', async () => {
      const numbers = Array.from({ length: 200 }, (_, i) => i + 1);
      const id = await created({ partCount: numbers.length });
      for (const number of numbers) await store.addPart(id, part(number, 0), LIMITS);
      assert.equal(await store.queue(id, named(...numbers)), true);
    });

    test('only the holder of the lease can report and finish', async () => {
      const id = await processing('mine');
      assert.equal(await other.report(id, 'another', 0.9), false);
      assert.equal(await other.finish(id, 'another', { result: '{}' }), false);
      assert.equal(await store.report(id, 'mine', 0.25), true);
      assert.equal((await other.find(id))?.progress, 0.25);
      assert.equal(await store.holds(id, 'mine'), true);
      assert.equal(await store.holds(id, 'another'), false);
      assert.equal(await store.finish(id, 'mine', { result: '{"a":1}' }), true);
      assert.equal((await other.find(id))?.state, 'completed');
      assert.deepEqual(await other.outcome(id), { result: '{"a":1}' });
    });

    test('a worker that was thought dead finds the door closed', async () => {
      const id = await processing('first');
      assert.equal(await other.giveBack(id, 'first'), true);
      assert.equal((await store.find(id))?.state, 'queued');
      assert.equal(await other.begin(id, 'second'), true);
      assert.equal(await store.finish(id, 'first', { result: 'late' }), false);
      assert.equal(await store.giveBack(id, 'first'), false);
      assert.equal(await other.finish(id, 'second', { result: 'right' }), true);
      assert.deepEqual(await store.outcome(id), { result: 'right' });
    });

    test('a failure is kept with its figures', async () => {
      const id = await processing();
      const failure = { code: 'audio_too_short' as const, detail: 'short', figures: { min_seconds: 5 } };
      assert.equal(await store.finish(id, 'mine', { failure }), true);
      assert.equal((await store.find(id))?.state, 'failed');
      assert.deepEqual(await store.outcome(id), { failure });
    });

    test('what is finished does not change again', async () => {
      const id = await processing();
      await store.finish(id, 'mine', { result: 'r' });
      assert.equal(await store.begin(id, 'again'), false);
      assert.equal(await store.finish(id, 'mine', { result: 's' }), false);
      assert.equal(await store.giveBack(id, 'mine'), false);
      assert.equal(await store.queue(id, named(1)), false);
      assert.deepEqual(await store.outcome(id), { result: 'r' });
    });

    test('past its time it is expired at once, even before anybody sweeps', async () => {
      const id = await processing();
      clock.ms += DAY;
      assert.equal((await store.find(id))?.state, 'expired');
      assert.equal(await store.holds(id, 'mine'), false);
      assert.equal(await store.finish(id, 'mine', { result: 'late' }), false);
      assert.equal(await store.outcome(id), null);
      const uploading = await created({ expiresAt: clock.ms });
      assert.equal((await store.addPart(uploading, part(1), LIMITS)).added, false);
    });

    test('expiring takes the result away and leaves a trace, which goes in its turn', async () => {
      const id = await processing();
      const young = await created({ expiresAt: clock.ms + 2 * DAY });
      await store.finish(id, 'mine', { result: 'secret' });
      clock.ms += DAY;
      assert.deepEqual(await store.expire(), [id]);
      assert.deepEqual(await store.expire(), []);
      clock.ms -= DAY;
      assert.equal((await store.find(id))?.state, 'expired');
      assert.equal(await store.outcome(id), null);
      clock.ms += DAY;
      await store.forgetExpired(clock.ms);
      assert.equal((await store.find(id))?.state, 'expired');
      await store.forgetExpired(clock.ms + 1);
      assert.equal(await store.find(id), null);
      assert.equal((await store.find(young))?.state, 'uploading');
    });

    test('deleting leaves nothing', async () => {
      const id = await processing();
      assert.equal(await other.delete(id), true);
      assert.equal(await store.delete(id), false);
      assert.equal(await store.find(id), null);
      assert.deepEqual(await store.parts(id), []);
      assert.equal(await store.holds(id, 'mine'), false);
      assert.equal(await store.finish(id, 'mine', { result: 'late' }), false);
    });

    test('the blobs of a finished request are forgotten with its parts', async () => {
      const id = await processing();
      await store.forgetParts(id);
      assert.deepEqual(await store.parts(id), []);
      assert.equal((await store.find(id))?.state, 'processing');
    });

    test('states are listed and counted', async () => {
      const first = await queued();
      const second = await processing();
      await created();
      assert.deepEqual(await store.inState('queued'), [first]);
      assert.deepEqual(await store.inState('processing'), [second]);
      assert.deepEqual(await store.countByState(), { uploading: 1, queued: 1, processing: 1 });
    });
  });
}
