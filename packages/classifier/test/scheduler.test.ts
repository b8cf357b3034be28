import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Priority, type Rules, Scheduler, type Work } from '../src/scheduler.ts';

interface Numbered extends Work {
  id: number;
}

const rules: Rules = {
  queueLimit: 6,
  batchSamples: 10,
  discreteTurns: 3,
  reserveMs: 100,
};
const oneIdle = { now: 0, threads: 1, idle: 1, asynchRunning: 0 };
let ids = 0;
const make = (priority: Priority, length = 5): Numbered => ({ id: ++ids, priority, length });

function filled(priorities: Priority[], length = 5, custom: Partial<Rules> = {}) {
  const scheduler = new Scheduler<Numbered>({ ...rules, ...custom });
  const work = priorities.map((priority) => make(priority, length));
  for (const item of work) assert.ok(scheduler.offer(item, 0));
  return { scheduler, work };
}

test('discrete work goes before asynch work that came earlier', () => {
  const { scheduler, work } = filled(['asynch', 'discrete']);
  assert.deepEqual(scheduler.next(oneIdle), [work[1]]);
  assert.deepEqual(scheduler.next(oneIdle), [work[0]]);
  assert.deepEqual(scheduler.next(oneIdle), []);
});

test('windows of one length share a batch, another length waits for the next', () => {
  const { scheduler } = filled([]);
  const [a, b, c] = [make('discrete', 5), make('discrete', 5), make('discrete', 4)];
  for (const item of [a, b, c]) scheduler.offer(item as Numbered, 0);
  assert.deepEqual(scheduler.next(oneIdle), [a, b]);
  assert.deepEqual(scheduler.next(oneIdle), [c]);
});

test('a window longer than the batch limit still goes, alone', () => {
  const { scheduler, work } = filled(['discrete', 'discrete'], 11);
  assert.deepEqual(scheduler.next(oneIdle), [work[0]]);
});

test('two idle threads with two windows take one each instead of one batch', () => {
  const { scheduler, work } = filled(['discrete', 'discrete']);
  assert.deepEqual(scheduler.next({ ...oneIdle, threads: 2, idle: 2 }), [work[0]]);
});

test('a full queue refuses its own priority only', () => {
  const { scheduler } = filled(Array.from({ length: rules.queueLimit }, () => 'asynch'));
  assert.equal(scheduler.offer(make('asynch'), 0), false);
  assert.equal(scheduler.offer(make('discrete'), 0), true);
});

test('a thread is kept from asynch work for a while after a discrete request, and lent again afterwards', () => {
  const { scheduler } = filled(['discrete', 'asynch', 'asynch']);
  const two = { threads: 2, idle: 1 };
  assert.equal(scheduler.next({ ...two, now: 0, asynchRunning: 0 })[0]?.priority, 'discrete');
  assert.deepEqual(scheduler.next({ ...two, now: 99, asynchRunning: 1 }), []);
  assert.equal(scheduler.next({ ...two, now: 100, asynchRunning: 1 })[0]?.priority, 'asynch');
});

test('the only thread is never kept from asynch work', () => {
  const { scheduler } = filled(['discrete', 'asynch']);
  scheduler.next(oneIdle);
  assert.equal(scheduler.next(oneIdle)[0]?.priority, 'asynch');
});

test('work given back by a lost thread goes first and alone', () => {
  const { scheduler, work } = filled(['discrete', 'discrete', 'discrete', 'discrete']);
  const lost = scheduler.next(oneIdle);
  assert.equal(lost.length, 2);
  scheduler.giveBack(lost);
  const sizes = [];
  const order = [];
  for (let batch = scheduler.next(oneIdle); batch.length > 0; batch = scheduler.next(oneIdle)) {
    sizes.push(batch.length);
    order.push(...batch);
  }
  assert.deepEqual(order, work);
  assert.deepEqual(sizes, [1, 1, 2]);
});

/** What may happen to a scheduler, in any order. */
const priority = fc.constantFrom<Priority>('discrete', 'asynch');
const event = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('offer' as const),
      priority,
      length: fc.integer({ min: 1, max: 6 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('next' as const), idle: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('finish' as const), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('lose' as const), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('abort' as const), pick: fc.nat() }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 80 }) }),
  },
);

test('whatever happens: no queue over its limit, no mixed batch, first in first out, priorities kept, nothing lost', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 120 }), (events) => {
      const scheduler = new Scheduler<Numbered>(rules);
      const queues: Record<Priority, Numbered[]> = { discrete: [], asynch: [] };
      const running: Numbered[][] = [];
      const givenBack = new Set<Numbered>();
      const threads = 3;
      let now = 0;
      let turnsInARow = 0;
      for (const step of events) {
        if (step.kind === 'wait') now += step.ms;
        if (step.kind === 'offer') {
          const work = make(step.priority, step.length);
          const room = queues[step.priority].length < rules.queueLimit;
          assert.equal(scheduler.offer(work, now), room);
          if (room) queues[step.priority].push(work);
        }
        if (step.kind === 'abort') {
          const all = [...queues.discrete, ...queues.asynch];
          const work = all[step.pick % Math.max(1, all.length)];
          if (work === undefined) continue;
          assert.equal(scheduler.remove(work), true);
          assert.equal(scheduler.remove(work), false);
          queues[work.priority].splice(queues[work.priority].indexOf(work), 1);
        }
        if (step.kind === 'finish' || step.kind === 'lose') {
          const [batch] = running.splice(step.pick % Math.max(1, running.length), 1);
          if (batch === undefined || step.kind === 'finish') continue;
          scheduler.giveBack(batch);
          for (const work of batch) givenBack.add(work);
          queues[(batch[0] as Numbered).priority].unshift(...batch);
        }
        if (step.kind === 'next') {
          const idle = Math.min(step.idle, threads - running.length);
          const asynchRunning = running.filter(([first]) => first?.priority === 'asynch').length;
          const batch = scheduler.next({ now, threads, idle, asynchRunning });
          const [head] = batch;
          if (head === undefined) {
            const mayStart =
              queues.discrete.length > 0 || (queues.asynch.length > 0 && asynchRunning < threads - 1);
            assert.ok(idle < 1 || !mayStart, 'an idle thread was given nothing while work waited');
            continue;
          }
          const queue = queues[head.priority];
          assert.deepEqual(batch, queue.splice(0, batch.length), 'not first in, first out');
          assert.ok(batch.every((work) => work.length === head.length));
          assert.ok(batch.length === 1 || batch.length * head.length <= rules.batchSamples);
          assert.ok(batch.length === 1 || !batch.some((work) => givenBack.has(work)));
          if (head.priority === 'discrete') {
            turnsInARow = queues.asynch.length > 0 ? turnsInARow + 1 : 0;
          } else {
            if (queues.discrete.length > 0)
              assert.ok(turnsInARow >= rules.discreteTurns, 'asynch overtook discrete');
            turnsInARow = 0;
          }
          running.push(batch);
        }
        assert.equal(scheduler.waiting('discrete'), queues.discrete.length);
        assert.equal(scheduler.waiting('asynch'), queues.asynch.length);
        assert.equal(
          scheduler.waitingSamples('discrete'),
          queues.discrete.reduce((sum, work) => sum + work.length, 0),
        );
      }
      assert.deepEqual(scheduler.drain(), [...queues.discrete, ...queues.asynch]);
      assert.equal(scheduler.waiting('discrete') + scheduler.waiting('asynch'), 0);
    }),
    { numRuns: 2_000, seed: 11 },
  );
});

test('asynch work does not starve however much discrete work arrives', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 5 }), (threads, discreteTurns) => {
      const { scheduler, work } = filled(['asynch', 'asynch'], 5, { discreteTurns });
      const served: Numbered[] = [];
      for (let turn = 0; turn < 2 * (discreteTurns + 1); turn++) {
        while (scheduler.offer(make('discrete'), turn));
        served.push(...scheduler.next({ now: turn, threads, idle: 1, asynchRunning: 0 }));
      }
      assert.ok(work.every((item) => served.includes(item)));
    }),
    { seed: 12 },
  );
});
