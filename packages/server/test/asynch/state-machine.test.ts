// Random histories of requests and jobs, with crashes, late workers and a clock that jumps, against a model of what
// must be true whatever happens. The stores are the real ones, each step on a random one of two connections.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RequestState } from '@undertone/contract';
import fc from 'fast-check';
import type { Job, JobQueue } from '../../src/asynch/stores/job-queue.ts';
import type { RequestStore } from '../../src/asynch/stores/request-store.ts';
import { Clock, jobQueues, type Opened, requestStores } from './support/stores.ts';

const LEASE = 10_000;
const DAY = 86_400_000;
const PARTS = 2;

interface ModelRequest {
  state: RequestState;
  etags: Map<number, string>;
  lease: string | null;
  result: string | null;
  expiresAt: number;
}

interface Model {
  requests: Map<string, ModelRequest>;
  /** Waiting and held jobs: deaths, and who holds it until when. */
  jobs: Map<string, { deaths: number; held: { lease: string; until: number; by: number } | null }>;
  nextId: number;
}

interface Real {
  clock: Clock;
  requests: RequestStore[];
  queues: JobQueue[];
  held: Job[];
}

type Step = fc.AsyncCommand<Model, Real>;

function living(model: Model, real: Real, id: string): ModelRequest | undefined {
  const request = model.requests.get(id);
  return request && request.expiresAt > real.clock.ms ? request : undefined;
}

function pick<T>(list: readonly T[], choice: number): T | undefined {
  return list[choice % Math.max(1, list.length)];
}

function step(name: string, run: (model: Model, real: Real) => Promise<void>): Step {
  return {
    check: () => true,
    run: async (model, real) => {
      await run(model, real);
      await compare(model, real);
    },
    toString: () => name,
  };
}

/** After every step, both connections must see exactly what the model says. */
async function compare(model: Model, real: Real): Promise<void> {
  for (const store of real.requests) {
    for (let number = 0; number < model.nextId; number++) {
      const id = `r${number}`;
      const found = await store.find(id);
      const expected = model.requests.get(id);
      const state = expected && (expected.expiresAt <= real.clock.ms ? 'expired' : expected.state);
      assert.equal(found?.state, state, id);
      const outcome = await store.outcome(id);
      const result = state === 'completed' ? (expected?.result ?? null) : null;
      assert.deepEqual(outcome, result === null ? null : { result });
      if (state === 'uploading') {
        const etags = new Map((await store.parts(id)).map(({ number, etag }) => [number, etag]));
        assert.deepEqual(etags, new Map([...(expected?.etags ?? [])].sort()));
      }
    }
  }
  for (const queue of real.queues) {
    assert.equal(await queue.waiting(), [...model.jobs.values()].filter(({ held }) => held === null).length);
  }
}

const side = fc.integer({ min: 0, max: 1 });
const choice = fc.nat(20);
const etag = fc.constantFrom('aa', 'bb');

async function create(model: Model, real: Real, at: number): Promise<[string, ModelRequest]> {
  const id = `r${model.nextId++}`;
  const expiresAt = real.clock.ms + DAY;
  await real.requests[at]?.create({
    id,
    owner: 'o',
    uploadId: 'u',
    model: '4emotions',
    intervalSeconds: 5,
    partCount: PARTS,
    createdAt: real.clock.ms,
    expiresAt,
  });
  const request: ModelRequest = {
    state: 'uploading',
    etags: new Map(),
    lease: null,
    result: null,
    expiresAt,
  };
  model.requests.set(id, request);
  return [id, request];
}

const steps: fc.Arbitrary<Step>[] = [
  side.map((at) => step('create', async (model, real) => void (await create(model, real, at)))),
  // Without this short way random steps would seldom get as far as a job.
  side.map((at) =>
    step('upload', async (model, real) => {
      const [id, request] = await create(model, real, at);
      for (const number of [1, 2]) {
        const part = { number, blob: `${number}-aa`, etag: 'aa', bytes: 1 };
        await real.requests[at]?.addPart(id, part, { maxTotalBytes: 100 });
        request.etags.set(number, 'aa');
      }
      assert.equal(await real.requests[at]?.queue(id, request.etags), true);
      request.state = 'queued';
      await real.queues[at]?.add(id);
      model.jobs.set(id, { deaths: 0, held: null });
    }),
  ),
  fc.tuple(side, choice, fc.integer({ min: 1, max: PARTS }), etag).map(([at, which, number, tag]) =>
    step(`part ${which} ${number} ${tag}`, async (model, real) => {
      const id = pick([...model.requests.keys()], which);
      if (id === undefined) return;
      const answer = await real.requests[at]?.addPart(
        id,
        { number, blob: `${number}-${tag}`, etag: tag, bytes: 1 },
        { maxTotalBytes: 100 },
      );
      const request = living(model, real, id);
      const open = request?.state === 'uploading';
      assert.equal(answer?.added, open);
      if (open) request.etags.set(number, tag);
    }),
  ),
  fc.tuple(side, choice, etag, etag).map(([at, which, first, second]) =>
    step(`complete ${which} ${first} ${second}`, async (model, real) => {
      const id = pick([...model.requests.keys()], which);
      if (id === undefined) return;
      const named = new Map([
        [1, first],
        [2, second],
      ]);
      const queued = await real.requests[at]?.queue(id, named);
      const request = living(model, real, id);
      const right = request?.etags.get(1) === first && request.etags.get(2) === second;
      assert.equal(queued, request?.state === 'uploading' && right);
      if (!queued || !request) return;
      request.state = 'queued';
      await real.queues[at]?.add(id);
      model.jobs.set(id, { deaths: 0, held: null });
    }),
  ),
  side.map((by) =>
    step('claim and begin', async (model, real) => {
      const job = await real.queues[by]?.claim(LEASE);
      const waiting = [...model.jobs].find(([, { held }]) => held === null);
      assert.equal(job?.requestId, waiting?.[0]);
      if (!job || !waiting) return;
      assert.equal(job.deaths, waiting[1].deaths);
      waiting[1].held = { lease: job.lease, until: real.clock.ms + LEASE, by };
      real.held.push(job);
      const request = living(model, real, job.requestId);
      const may = request?.state === 'queued' || request?.state === 'processing';
      assert.equal(await real.requests[by]?.begin(job.requestId, job.lease), may);
      if (may) Object.assign(request, { state: 'processing', lease: job.lease });
    }),
  ),
  fc.tuple(side, choice).map(([at, which]) =>
    step(`renew ${which}`, async (model, real) => {
      const job = pick(real.held, which);
      if (job === undefined) return;
      const renewed = await real.queues[at]?.renew(job, LEASE);
      const held = model.jobs.get(job.requestId)?.held;
      assert.equal(renewed, held?.lease === job.lease);
      if (held && renewed) held.until = real.clock.ms + LEASE;
      const request = living(model, real, job.requestId);
      const ours = request?.state === 'processing' && request.lease === job.lease;
      assert.equal(await real.requests[at]?.holds(job.requestId, job.lease), ours);
    }),
  ),
  fc.tuple(side, choice, fc.boolean()).map(([at, which, crashed]) =>
    step(`finish ${which}${crashed ? ' and crash before the job is removed' : ''}`, async (model, real) => {
      const job = pick(real.held, which);
      if (job === undefined) return;
      const result = `result under ${job.lease}`;
      const finished = await real.requests[at]?.finish(job.requestId, job.lease, { result });
      const request = living(model, real, job.requestId);
      const ours = request?.state === 'processing' && request.lease === job.lease;
      assert.equal(finished, ours);
      if (!ours) return;
      Object.assign(request, { state: 'completed', result, lease: null });
      if (crashed) return;
      await real.queues[at]?.remove(job.requestId);
      model.jobs.delete(job.requestId);
    }),
  ),
  fc.tuple(side, choice, fc.boolean()).map(([at, which, died]) =>
    step(`give back ${which}`, async (model, real) => {
      const job = pick(real.held, which);
      if (job === undefined) return;
      const given = await real.requests[at]?.giveBack(job.requestId, job.lease);
      const request = model.requests.get(job.requestId);
      const ours = request?.state === 'processing' && request.lease === job.lease;
      assert.equal(given, ours);
      if (ours) Object.assign(request, { state: 'queued', lease: null });
      await real.queues[at]?.release(job, { died });
      const kept = model.jobs.get(job.requestId);
      if (kept?.held?.lease !== job.lease) return;
      kept.held = null;
      if (died) kept.deaths++;
    }),
  ),
  side.map((by) =>
    step('bury the dead', async (model, real) => {
      const dead = (await real.queues[by]?.releaseDead()) ?? [];
      const expected = [...model.jobs].filter(
        ([, { held }]) => held !== null && held.by !== by && held.until < real.clock.ms,
      );
      assert.deepEqual(dead.map(({ requestId }) => requestId).sort(), expected.map(([id]) => id).sort());
      for (const { requestId, lease } of dead) {
        const job = model.jobs.get(requestId);
        if (job) Object.assign(job, { deaths: job.deaths + 1, held: null });
        const given = await real.requests[by]?.giveBack(requestId, lease);
        const request = model.requests.get(requestId);
        assert.equal(given, request?.state === 'processing' && request.lease === lease);
        if (given && request) Object.assign(request, { state: 'queued', lease: null });
      }
    }),
  ),
  fc.tuple(side, choice).map(([at, which]) =>
    step(`delete ${which}`, async (model, real) => {
      const id = pick([...model.requests.keys()], which);
      if (id === undefined) return;
      assert.equal(await real.requests[at]?.delete(id), true);
      await real.queues[at]?.remove(id);
      model.requests.delete(id);
      model.jobs.delete(id);
    }),
  ),
  side.map((at) =>
    step('sweep', async (model, real) => {
      const expired = (await real.requests[at]?.expire()) ?? [];
      const due = [...model.requests].filter(
        ([, { state, expiresAt }]) => state !== 'expired' && expiresAt <= real.clock.ms,
      );
      assert.deepEqual(expired.sort(), due.map(([id]) => id).sort());
      for (const [id, request] of due) {
        Object.assign(request, { state: 'expired', result: null, lease: null });
        await real.queues[at]?.remove(id);
        model.jobs.delete(id);
      }
    }),
  ),
  fc.constantFrom(1, LEASE / 2, LEASE + 1, DAY / 2).map((ms) =>
    step(`${ms} ms pass`, async (_model, real) => {
      real.clock.ms += ms;
    }),
  ),
];

test('whatever the order of steps, deaths and delays, the stores do what the state machine says', async () => {
  const [requestStore] = requestStores;
  const [jobQueue] = jobQueues;
  assert.ok(requestStore && jobQueue);
  await fc.assert(
    fc.asyncProperty(fc.commands(steps, { maxCommands: 100, size: 'max' }), async (commands) => {
      const clock = new Clock();
      const opened: [Opened<RequestStore>, Opened<JobQueue>] = [
        await requestStore.fresh(clock),
        await jobQueue.fresh(clock),
      ];
      const [requests, queues] = opened;
      try {
        await fc.asyncModelRun(
          () => ({
            model: { requests: new Map(), jobs: new Map(), nextId: 0 },
            real: {
              clock,
              requests: [requests.open(), requests.open()],
              queues: [queues.open(), queues.open()],
              held: [],
            },
          }),
          commands,
        );
      } finally {
        for (const store of opened) await store.close();
      }
    }),
    { seed: 20_300_101, numRuns: 80 },
  );
});
