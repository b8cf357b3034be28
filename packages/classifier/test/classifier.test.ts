import assert from 'node:assert/strict';
import { after, before, type TestContext, test } from 'node:test';
import {
  Classifier,
  type ClassifierOptions,
  ClosedError,
  OverloadedError,
  type Prediction,
} from '../src/index.ts';
import { noise, silence, sine, vowels } from './windows.ts';

let classifier: Classifier;
before(async () => {
  classifier = await Classifier.start({ workers: 2 });
});
after(() => classifier.close());

/** One with settings of its own, closed after the test whatever comes. */
async function start(t: TestContext, options: ClassifierOptions): Promise<Classifier> {
  const own = await Classifier.start(options);
  t.after(() => own.close());
  return own;
}

const discrete = (samples: Float32Array) => classifier.classify(samples, { priority: 'discrete' });
const flat = ({ models }: Prediction) => Object.values(models).flatMap((emotions) => Object.values(emotions));

function assertAlike(a: Prediction, b: Prediction, tolerance: number): void {
  const other = flat(b);
  flat(a).forEach((p, i) => {
    assert.ok(Math.abs(p - (other[i] as number)) <= tolerance, `${p} and ${other[i]} differ`);
  });
}

function assertWellFormed(prediction: Prediction, seconds: number): void {
  for (const { id, emotions } of classifier.catalog.models) {
    const probabilities = prediction.models[id] ?? {};
    assert.deepEqual(Object.keys(probabilities), emotions, `${id}: emotions in the catalogue's order`);
    const values = Object.values(probabilities);
    assert.ok(values.every((p) => p >= 0 && p <= 1));
    assert.ok(Math.abs(values.reduce((sum, p) => sum + p, 0) - 1) < 1e-4, `${id} sums to 1`);
  }
  assert.ok(prediction.speechSeconds >= 0 && prediction.speechSeconds <= seconds);
  assert.ok(prediction.timings.inferenceMs > 0 && prediction.timings.queueMs >= 0);
}

test('one pass gives calibrated probabilities of all three models for every length from 1 to 10 s', async () => {
  for (const seconds of [1, 1.37, 2.5, 4, 5, 7.77, 10]) {
    assertWellFormed(await discrete(vowels(seconds)), seconds);
  }
});

test('lengths outside 1 to 10 s are refused with the limits and the length in the message', async () => {
  for (const length of [0, 15_999, 160_001]) {
    await assert.rejects(discrete(new Float32Array(length)), (error: Error) => {
      assert.ok(error instanceof RangeError);
      assert.match(error.message, /1 to 10 s/);
      assert.match(error.message, new RegExp(`has ${length} samples`));
      return true;
    });
  }
});

test('NaN and infinity are refused, wherever they stand', async () => {
  for (const [at, bad] of [
    [0, Number.NaN],
    [40_000, Number.POSITIVE_INFINITY],
    [79_999, Number.NEGATIVE_INFINITY],
  ] as const) {
    const samples = noise(5);
    samples[at] = bad;
    await assert.rejects(discrete(samples), /finite/);
  }
});

test('the same window gives the same answer again, also as a view into a larger buffer', async () => {
  const window = vowels(5);
  const larger = new Float32Array(window.length + 1_000);
  larger.set(window, 700);
  const first = await discrete(window);
  assertAlike(first, await discrete(window), 0);
  assertAlike(first, await discrete(larger.subarray(700, 700 + window.length)), 0);
});

test('a window gets the same answer whatever shares its batch', async () => {
  const windows = [
    vowels(5),
    noise(5),
    sine(5),
    silence(5),
    vowels(5, 220),
    noise(5, 9),
    vowels(5, 90),
    sine(5, 1000),
  ];
  const alone: Prediction[] = [];
  for (const window of windows) alone.push(await discrete(window));
  for (const priority of ['discrete', 'asynch'] as const) {
    const together = await Promise.all(windows.map((window) => classifier.classify(window, { priority })));
    together.forEach((prediction, i) => {
      assertAlike(prediction, alone[i] as Prediction, 0.01);
    });
  }
});

test('where nobody speaks no model claims an emotion', async () => {
  for (const window of [silence(4), silence(10), sine(5), noise(5)]) {
    const prediction = await discrete(window);
    for (const emotions of Object.values(prediction.models)) {
      assert.ok(Math.max(...Object.values(emotions)) < 0.38, JSON.stringify(emotions));
    }
  }
});

test('discrete work overtakes asynch work that was there before', async (t) => {
  const one = await start(t, { workers: 1 });
  const order: string[] = [];
  const note = (name: string) => () => order.push(name);
  const work = Array.from({ length: 6 }, () =>
    one.classify(noise(5), { priority: 'asynch' }).then(note('asynch')),
  );
  work.push(one.classify(noise(2), { priority: 'discrete' }).then(note('discrete')));
  assert.deepEqual(one.stats(), { workers: 1, busy: 1, queued: { discrete: 1, asynch: 5 }, restarts: 0 });
  await Promise.all(work);
  assert.equal(order.indexOf('discrete'), 1, 'only what was already running came before');
});

test('a full queue refuses at once and says when to try again; what was accepted is answered', async (t) => {
  const one = await start(t, { workers: 1, queueLimit: 3 });
  const window = noise(10);
  let answered = false;
  const results = Array.from({ length: 8 }, () => one.classify(window, { priority: 'discrete' }));
  for (const result of results.slice(0, 4)) {
    result.then(() => {
      answered = true;
    });
  }
  const refused = await Promise.allSettled(results.slice(4));
  assert.equal(answered, false, 'the refusal did not wait for an inference');
  for (const result of refused) {
    assert.ok(result.status === 'rejected' && result.reason instanceof OverloadedError);
    assert.ok(Number.isInteger(result.reason.retryAfterSeconds) && result.reason.retryAfterSeconds >= 1);
  }
  for (const prediction of await Promise.all(results.slice(0, 4))) assertWellFormed(prediction, 10);
  assert.deepEqual(one.stats().queued, { discrete: 0, asynch: 0 });
});

test('a discrete window that would wait too long is refused before the queue is full', async (t) => {
  const one = await start(t, { workers: 1, maxWaitMs: 1 });
  const results = await Promise.allSettled(
    Array.from({ length: 4 }, () => one.classify(noise(5), { priority: 'discrete' })),
  );
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'rejected'],
  );
});

test('an abort takes waiting work out of the queue and gives the signal’s reason', async (t) => {
  const one = await start(t, { workers: 1 });
  const controller = new AbortController();
  const running = one.classify(noise(5), { priority: 'discrete', signal: controller.signal });
  const waiting = one.classify(noise(5), { priority: 'asynch', signal: controller.signal });
  const other = one.classify(noise(5), { priority: 'asynch' });
  const reason = new Error('the client went away');
  controller.abort(reason);
  assert.equal(one.stats().queued.asynch, 1);
  await assert.rejects(running, reason);
  await assert.rejects(waiting, reason);
  await assert.rejects(one.classify(noise(5), { priority: 'asynch', signal: controller.signal }), reason);
  assertWellFormed(await other, 5);
});

test('close() answers everything that was accepted and refuses the rest', async (t) => {
  const two = await start(t, { workers: 2 });
  const accepted = Array.from({ length: 6 }, (_, i) =>
    two.classify(noise(2), { priority: i % 2 === 0 ? 'discrete' : 'asynch' }),
  );
  const closed = two.close();
  await assert.rejects(two.classify(noise(2), { priority: 'discrete' }), ClosedError);
  for (const prediction of await Promise.all(accepted)) assertWellFormed(prediction, 2);
  await closed;
  assert.equal(two.close(), closed);
  assert.equal(two.stats().workers, 0);
});

test('both sets of weights answer', async (t) => {
  const open = await start(t, { workers: 1, weights: 'open' });
  assert.equal(open.weights.commercial_use, true);
  assertWellFormed(await open.classify(vowels(5), { priority: 'discrete' }), 5);
});

test('settings that make no sense stop the start and are named', async () => {
  await assert.rejects(Classifier.start({ workers: 0 }), /workers must be a positive integer/);
  await assert.rejects(Classifier.start({ queueLimit: 1.5 }), /queueLimit must be a positive integer/);
  await assert.rejects(Classifier.start({ maxWaitMs: -1 }), /maxWaitMs must be a positive integer/);
});

test('inference does not hold the event loop', async () => {
  const window = noise(10);
  const before = performance.eventLoopUtilization();
  await Promise.all(Array.from({ length: 8 }, () => discrete(window)));
  const { utilization } = performance.eventLoopUtilization(before);
  assert.ok(utilization < 0.25, `the event loop was busy for ${utilization} of the time`);
});
