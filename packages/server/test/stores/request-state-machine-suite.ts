// Random histories of requests, with workers that die or are late and a clock that jumps, compared with a model. Each step runs
// in one of two processes, at random.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RequestState } from '@undertone/contract';
import fc from 'fast-check';
import type { Completed, Outcome, RequestStore } from '../../src/stores/contracts.ts';
import { DAY, type StoresFactory, type TestStores } from './support/factories.ts';

const LEASE = 10_000;
const PARTS = 2;
const OWNER = 'owner';
const LIMITS = { maxRequestBytes: 3, maxOwnerBytes: 5 };

interface ModelRequest {
  state: RequestState | 'deleted';
  /** By number. */
  parts: Map<number, { etag: string; bytes: number }>;
  queuedAt: number;
  lease: string | null;
  leaseUntil: number;
  failedAttempts: number;
  outcome: Outcome | null;
  expiresAt: number;
}

interface Model {
  requests: Map<string, ModelRequest>;
  made: number;
}

interface Real {
  stores: TestStores;
  sides: RequestStore[];
  /** Every lease ever granted, and to which side. Some have been taken over since. */
  leases: { id: string; lease: string; side: number }[];
}

type Step = fc.AsyncCommand<Model, Real>;
type Run = (model: Model, real: Real, store: RequestStore, side: number) => Promise<void>;

const side = fc.integer({ min: 0, max: 1 });
const choice = fc.nat(20);
const etag = fc.constantFrom('aa', 'bb');

function step(name: string, at: number, run: Run): Step {
  return {
    check: () => true,
    run: async (model, real) => {
      await run(model, real, real.sides[at] as RequestStore, at);
      for (const store of real.sides) await compare(model, real, store);
    },
    toString: () => `${name} (side ${at})`,
  };
}

/** The state that callers must see now, whether or not the sweep has run. */
function stateNow(request: ModelRequest, now: number): ModelRequest['state'] | undefined {
  if (request.expiresAt + DAY <= now) return undefined;
  return request.expiresAt <= now && request.state !== 'deleted' ? 'expired' : request.state;
}

async function compare(model: Model, { stores }: Real, store: RequestStore): Promise<void> {
  const now = stores.now();
  const counts: Partial<Record<string, number>> = {};
  const unfinished: string[] = [];
  for (const [id, request] of model.requests) {
    const state = stateNow(request, now);
    const found = await store.find(id);
    assert.equal(found?.state, state === 'deleted' ? undefined : state, id);
    const done = state === 'completed' || state === 'failed';
    assert.deepEqual(await store.outcome(id), done ? request.outcome : null);
    const parts = (await store.parts(id)).map((part) => [
      part.number,
      { etag: part.etag, bytes: part.bytes },
    ]);
    assert.deepEqual(parts, [...request.parts].sort(), id);
    if (state !== undefined && ['uploading', 'queued', 'processing'].includes(state)) unfinished.push(id);
    if (request.state !== 'deleted') counts[request.state] = (counts[request.state] ?? 0) + 1;
  }
  assert.deepEqual((await store.needingBlobs([...model.requests.keys()])).sort(), unfinished.sort());
  assert.deepEqual(await store.countByState(), counts);
}

function isQueued(answer: Completed): boolean {
  return 'queued' in answer && answer.queued;
}

function pick<T>(list: Iterable<T>, which: number): T | undefined {
  const all = [...list];
  return all[which % Math.max(1, all.length)];
}

function bytesOf(request: ModelRequest, exceptNumber?: number): number {
  let sum = 0;
  for (const [number, { bytes }] of request.parts) if (number !== exceptNumber) sum += bytes;
  return sum;
}

/** Bytes of everything but one part. */
function usage(model: Model, request: ModelRequest, number: number): { request: number; owner: number } {
  const ofRequest = bytesOf(request, number);
  let owner = ofRequest;
  for (const other of model.requests.values()) if (other !== request) owner += bytesOf(other);
  return { request: ofRequest, owner };
}

async function create(model: Model, { stores }: Real, store: RequestStore): Promise<[string, ModelRequest]> {
  // Ids are in order of creation, which decides between two that were queued in the same millisecond.
  const id = `r${String(model.made++).padStart(4, '0')}`;
  await store.create({
    id,
    owner: OWNER,
    uploadId: 'u',
    model: '4emotions',
    intervalSeconds: 5,
    partCount: PARTS,
  });
  const request: ModelRequest = {
    state: 'uploading',
    parts: new Map(),
    queuedAt: 0,
    lease: null,
    leaseUntil: 0,
    failedAttempts: 0,
    outcome: null,
    expiresAt: stores.now() + DAY,
  };
  model.requests.set(id, request);
  return [id, request];
}

/** The request that this lease still holds. */
function held(
  model: Model,
  { stores }: Real,
  { id, lease }: { id: string; lease: string },
): ModelRequest | undefined {
  const request = model.requests.get(id);
  const now = stores.now();
  return request && stateNow(request, now) === 'processing' && request.lease === lease ? request : undefined;
}

function erase(request: ModelRequest, state: 'expired' | 'deleted'): void {
  Object.assign(request, { state, parts: new Map(), lease: null, outcome: null });
}

const steps: fc.Arbitrary<Step>[] = [
  side.map((at) => step('create', at, async (model, real, store) => void (await create(model, real, store)))),
  // A shortcut: random single steps rarely reach a worker.
  side.map((at) =>
    step('upload and complete', at, async (model, real, store) => {
      const [id, request] = await create(model, real, store);
      for (const number of [1, 2]) {
        const part = { number, blob: `${number}-x`, etag: 'aa', bytes: 0 };
        assert.equal((await store.addPart(id, part, LIMITS)).added, true);
        request.parts.set(number, { etag: 'aa', bytes: 0 });
      }
      const etags = new Map([
        [1, 'aa'],
        [2, 'aa'],
      ]);
      assert.equal(isQueued(await store.complete(id, etags)), true);
      Object.assign(request, { state: 'queued', queuedAt: real.stores.now() });
    }),
  ),
  fc
    .tuple(side, choice, fc.integer({ min: 1, max: PARTS }), etag, fc.integer({ min: 1, max: 3 }))
    .map(([at, which, number, tag, bytes]) =>
      step(`part ${number} (${tag}, ${bytes} bytes) of ${which}`, at, async (model, real, store) => {
        const id = pick(model.requests.keys(), which);
        const request = model.requests.get(id ?? '');
        if (id === undefined || request === undefined) return;
        const answer = await store.addPart(id, { number, blob: `${number}-x`, etag: tag, bytes }, LIMITS);
        const used = usage(model, request, number);
        const open = stateNow(request, real.stores.now()) === 'uploading';
        const seen = await store.find(id);
        if (!open) assert.deepEqual(answer, { added: false, why: 'not_uploading', request: seen });
        else if (used.request + bytes > LIMITS.maxRequestBytes) assert.equal(answer.added, false);
        else if (used.owner + bytes > LIMITS.maxOwnerBytes) {
          assert.deepEqual(answer, { added: false, why: 'storage_limit', usedBytes: used.owner });
        } else {
          assert.equal(answer.added, true);
          request.parts.set(number, { etag: tag, bytes });
        }
      }),
    ),
  fc.tuple(side, choice, etag, etag).map(([at, which, first, second]) =>
    step(`complete ${which} with ${first} ${second}`, at, async (model, real, store) => {
      const id = pick(model.requests.keys(), which);
      const request = model.requests.get(id ?? '');
      if (id === undefined || request === undefined) return;
      const named = new Map([
        [1, first],
        [2, second],
      ]);
      const right = [...named].every(([number, tag]) => request.parts.get(number)?.etag === tag);
      const may = right && stateNow(request, real.stores.now()) === 'uploading';
      assert.equal(isQueued(await store.complete(id, named)), may);
      if (may) Object.assign(request, { state: 'queued', queuedAt: real.stores.now() });
    }),
  ),
  fc.tuple(side, fc.boolean()).map(([at, crashed]) =>
    step(crashed ? 'claim after a restart' : 'claim', at, async (model, real, store) => {
      const now = real.stores.now();
      const running = crashed ? [] : real.leases.filter(({ side }) => side === at).map(({ lease }) => lease);
      const [expected] = [...model.requests]
        .filter(([, request]) => {
          const state = stateNow(request, now);
          const dead = request.leaseUntil < now && !running.includes(request.lease ?? '');
          return state === 'queued' || (state === 'processing' && dead);
        })
        .sort(([a, one], [b, other]) => one.queuedAt - other.queuedAt || (a < b ? -1 : 1));
      const claim = await store.claim({ leaseMs: LEASE, running });
      assert.equal(claim?.request.id, expected?.[0]);
      if (claim === null || expected === undefined) return;
      const [id, request] = expected;
      if (request.state === 'processing') request.failedAttempts++;
      assert.equal(claim.failedAttempts, request.failedAttempts);
      Object.assign(request, { state: 'processing', lease: claim.lease, leaseUntil: now + LEASE });
      real.leases.push({ id, lease: claim.lease, side: at });
    }),
  ),
  fc.tuple(side, choice).map(([at, which]) =>
    step(`renew lease ${which}`, at, async (model, real, store) => {
      const lease = pick(real.leases, which);
      if (lease === undefined) return;
      const request = held(model, real, lease);
      const renewed = await store.renew(lease.id, lease.lease, { leaseMs: LEASE, progress: 0.5 });
      assert.equal(renewed, request !== undefined);
      if (request) request.leaseUntil = real.stores.now() + LEASE;
    }),
  ),
  fc.tuple(side, choice, fc.boolean()).map(([at, which, countAttempt]) =>
    step(`requeue lease ${which}${countAttempt ? ' as failed' : ''}`, at, async (model, real, store) => {
      const lease = pick(real.leases, which);
      if (lease === undefined) return;
      const request = held(model, real, lease);
      assert.equal(await store.requeue(lease.id, lease.lease, { countAttempt }), request !== undefined);
      if (request === undefined) return;
      Object.assign(request, { state: 'queued', lease: null });
      if (countAttempt) request.failedAttempts++;
    }),
  ),
  fc.tuple(side, choice, fc.boolean()).map(([at, which, works]) =>
    step(`${works ? 'complete' : 'fail'} lease ${which}`, at, async (model, real, store) => {
      const lease = pick(real.leases, which);
      if (lease === undefined) return;
      const request = held(model, real, lease);
      const failure = { code: 'unreadable_audio' as const, detail: lease.lease, figures: {} };
      const outcome: Outcome = works ? { result: `under ${lease.lease}` } : { failure };
      assert.equal(await store.finish(lease.id, lease.lease, outcome), request !== undefined);
      if (request) Object.assign(request, { state: works ? 'completed' : 'failed', outcome, lease: null });
    }),
  ),
  fc.tuple(side, choice).map(([at, which]) =>
    step(`delete ${which}`, at, async (model, real, store) => {
      const id = pick(model.requests.keys(), which);
      const request = model.requests.get(id ?? '');
      if (id === undefined || request === undefined) return;
      const state = stateNow(request, real.stores.now());
      const expected = { deleted: 'already', undefined: 'unknown' }[String(state)] ?? 'deleted';
      assert.equal(await store.delete(id, OWNER), expected);
      if (expected === 'deleted') erase(request, 'deleted');
    }),
  ),
  side.map((at) =>
    step('sweep', at, async (model, real, store) => {
      await store.expire();
      const now = real.stores.now();
      for (const [id, request] of model.requests) {
        const state = stateNow(request, now);
        if (state === 'expired') erase(request, 'expired');
        if (state === undefined) model.requests.delete(id);
      }
    }),
  ),
  fc.constantFrom(1, LEASE / 2, LEASE + 1, DAY / 2).map((ms) =>
    step(`${ms} ms pass`, 0, async (_model, real) => {
      real.stores.advance(ms);
    }),
  ),
];

/** `numRuns`: fewer for a slow store. */
export function requestStateMachineSuite(factory: StoresFactory, numRuns = 50): void {
  test(`requests in ${factory.name} follow the state machine, whatever the order of steps, crashes and delays`, async () => {
    const stores = await factory.make();
    const sides = [(await stores.open()).requests, (await stores.open()).requests];
    try {
      await fc.assert(
        fc.asyncProperty(fc.commands(steps, { maxCommands: 100, size: 'max' }), async (commands) => {
          await stores.clear();
          await fc.asyncModelRun(
            () => ({ model: { requests: new Map(), made: 0 }, real: { stores, sides, leases: [] } }),
            commands,
          );
        }),
        { seed: 20_300_101, numRuns },
      );
    } finally {
      await stores.close();
    }
  });
}
