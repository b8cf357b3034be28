import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { PRIORITIES, type Priority, type Rules, Scheduler, type Work } from '../src/scheduler.ts';

interface Numbered extends Work {
  id: number;
}

const rules: Rules = { queueLimit: 6, turns: 3, reserveMs: 100 };
const moment = { now: 0, threads: 1, asynchRunning: 0 };
let ids = 0;
const make = (priority: Priority): Numbered => ({ id: ++ids, priority });

function filled(priorities: Priority[], custom: Partial<Rules> = {}) {
  const scheduler = new Scheduler<Numbered>({ ...rules, ...custom });
  const work = priorities.map(make);
  for (const item of work) assert.ok(scheduler.offer(item, 0));
  return { scheduler, work };
}

test('discrete work goes before streams, and both before earlier long recordings', () => {
  const { scheduler, work } = filled(['asynch', 'stream', 'discrete']);
  assert.equal(scheduler.next(moment), work[2]);
  assert.equal(scheduler.next(moment), work[1]);
  assert.equal(scheduler.next(moment), work[0]);
  assert.equal(scheduler.next(moment), undefined);
});

test('only the discrete queue has a limit', () => {
  const { scheduler } = filled(Array.from({ length: rules.queueLimit }, () => 'discrete'));
  assert.equal(scheduler.offer(make('discrete'), 0), false);
  for (let i = 0; i < 10 * rules.queueLimit; i++) {
    for (const each of ['stream', 'asynch'] as const) assert.equal(scheduler.offer(make(each), 0), true);
  }
});

test('one thread takes no asynch work for a while after a discrete request', () => {
  const { scheduler } = filled(['discrete', 'asynch', 'asynch']);
  assert.equal(scheduler.next({ now: 0, threads: 2, asynchRunning: 0 })?.priority, 'discrete');
  assert.equal(scheduler.next({ now: 99, threads: 2, asynchRunning: 1 }), undefined);
  assert.equal(scheduler.next({ now: 100, threads: 2, asynchRunning: 1 })?.priority, 'asynch');
});

test('a single thread always takes asynch work', () => {
  const { scheduler } = filled(['discrete', 'asynch']);
  scheduler.next(moment);
  assert.equal(scheduler.next(moment)?.priority, 'asynch');
});

test('owners take turns, however much one of them has queued', () => {
  const scheduler = new Scheduler<Work>({ ...rules, queueLimit: 20 });
  const offer = (owner: string, count: number) => {
    for (let i = 0; i < count; i++) assert.ok(scheduler.offer({ priority: 'discrete', owner }, 0));
  };
  const served = (count: number) =>
    Array.from({ length: count }, () => scheduler.next(moment)?.owner).join(' ');
  offer('a', 10);
  assert.equal(served(3), 'a a a');
  offer('b', 3);
  assert.equal(served(4), 'b a b a');
  offer('c', 1);
  assert.equal(served(5), 'b c a a a');
  offer('c', 1);
  assert.equal(served(3), 'c a a');
});

test('requeued work goes first, even if the queue is full', () => {
  const { scheduler, work } = filled(Array.from({ length: rules.queueLimit }, () => 'discrete'));
  const lost = scheduler.next(moment) as Numbered;
  scheduler.offer(make('discrete'), 0);
  scheduler.requeue(lost);
  assert.equal(scheduler.next(moment), work[0]);
});

/** Events, in any order. */
const priority = fc.constantFrom<Priority>(...PRIORITIES);
const event = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('offer' as const), priority }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('next' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('finish' as const), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('lose' as const), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('abort' as const), pick: fc.nat() }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 80 }) }),
  },
);

test('for any sequence of events: limits, FIFO order and priorities hold, and no work is lost', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 120 }), (events) => {
      const scheduler = new Scheduler<Numbered>(rules);
      const queues: Record<Priority, Numbered[]> = { discrete: [], stream: [], asynch: [] };
      const passedOver: Record<Priority, number> = { discrete: 0, stream: 0, asynch: 0 };
      const running: Numbered[] = [];
      const threads = 3;
      let now = 0;
      for (const step of events) {
        if (step.kind === 'wait') now += step.ms;
        if (step.kind === 'offer') {
          const work = make(step.priority);
          const room = step.priority !== 'discrete' || queues[step.priority].length < rules.queueLimit;
          assert.equal(scheduler.offer(work, now), room);
          if (room) queues[step.priority].push(work);
        }
        if (step.kind === 'abort') {
          const all = PRIORITIES.flatMap((each) => queues[each]);
          const work = all[step.pick % Math.max(1, all.length)];
          if (work === undefined) continue;
          assert.equal(scheduler.remove(work), true);
          assert.equal(scheduler.remove(work), false);
          queues[work.priority].splice(queues[work.priority].indexOf(work), 1);
        }
        if (step.kind === 'finish' || step.kind === 'lose') {
          const [work] = running.splice(step.pick % Math.max(1, running.length), 1);
          if (work === undefined || step.kind === 'finish') continue;
          scheduler.requeue(work);
          queues[work.priority].unshift(work);
        }
        if (step.kind === 'next' && running.length < threads) {
          const asynchRunning = running.filter((work) => work.priority === 'asynch').length;
          const work = scheduler.next({ now, threads, asynchRunning });
          if (work === undefined) {
            assert.equal(queues.discrete.length + queues.stream.length, 0);
            assert.ok(
              queues.asynch.length === 0 || asynchRunning >= threads - 1,
              'an idle thread got nothing',
            );
            continue;
          }
          assert.equal(work, queues[work.priority].shift(), 'not first in, first out');
          const higher = PRIORITIES.slice(0, PRIORITIES.indexOf(work.priority));
          if (higher.some((each) => queues[each].length > 0)) {
            assert.ok(passedOver[work.priority] >= rules.turns, `${work.priority} overtook`);
          }
          for (const lower of PRIORITIES.slice(PRIORITIES.indexOf(work.priority) + 1)) {
            passedOver[lower] = queues[lower].length > 0 ? passedOver[lower] + 1 : 0;
          }
          passedOver[work.priority] = 0;
          running.push(work);
        }
        for (const each of PRIORITIES) assert.equal(scheduler.waiting(each), queues[each].length);
      }
      assert.deepEqual(scheduler.drain(['discrete', 'stream']), [...queues.discrete, ...queues.stream]);
      assert.deepEqual(scheduler.drain(PRIORITIES), queues.asynch);
    }),
    { numRuns: 2_000, seed: 11 },
  );
});

test('streams and long recordings do not starve under constant discrete work', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 5 }), (threads, turns) => {
      const { scheduler, work } = filled(['asynch', 'stream', 'asynch', 'stream'], { turns });
      const served: Numbered[] = [];
      for (let turn = 0; turn < 3 * (turns + 2); turn++) {
        while (scheduler.offer(make('discrete'), turn));
        served.push(scheduler.next({ now: turn, threads, asynchRunning: 0 }) as Numbered);
      }
      assert.ok(work.every((item) => served.includes(item)));
    }),
    { seed: 12 },
  );
});
