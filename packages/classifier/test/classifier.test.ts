import assert from 'node:assert/strict';
import { after, before, type TestContext, test } from 'node:test';
import { TEST_MODELS } from '@undertone/testing/paths';
import {
  Classifier,
  type ClassifierOptions,
  ClosedError,
  DEFAULT_MODELS_DIR,
  OverloadedError,
  type Prediction,
} from '../src/index.ts';
import { noise, silence, sine, vowels } from './support/sounds.ts';

let classifier: Classifier;
before(async () => {
  classifier = await Classifier.start({ workers: 2 });
});
after(() => classifier.close());

/** A classifier with its own settings and the small test models, closed after the test. */
async function start(t: TestContext, options: ClassifierOptions): Promise<Classifier> {
  const own = await Classifier.start({ modelsDir: TEST_MODELS, ...options });
  t.after(() => own.close());
  return own;
}

const discrete = (samples: Float32Array) => classifier.classifyWindow(samples, { priority: 'discrete' });

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

test('one inference gives calibrated probabilities of all three models, for any length from 1 to 10 s', async () => {
  for (const seconds of [1, 1.37, 2.5, 4, 5, 7.77, 10]) {
    assertWellFormed(await discrete(vowels(seconds)), seconds);
  }
});

test('windows outside 1 to 10 s are refused with the limits and their length', async () => {
  for (const length of [0, 15_999, 160_001]) {
    await assert.rejects(discrete(new Float32Array(length)), (error: Error) => {
      assert.ok(error instanceof RangeError);
      assert.match(error.message, /1 to 10 s/);
      assert.match(error.message, new RegExp(`has ${length} samples`));
      return true;
    });
  }
});

test('results are repeatable, also for a view of a larger buffer, and the samples stay unchanged', async () => {
  const window = vowels(5);
  const larger = new Float32Array(window.length + 1_000);
  larger.set(window, 700);
  const first = await discrete(window);
  assert.deepEqual((await discrete(window)).models, first.models);
  assert.deepEqual((await discrete(larger.subarray(700, 700 + window.length))).models, first.models);
  assert.deepEqual(window, vowels(5));
});

test('no model is confident of an emotion without speech', async () => {
  for (const window of [silence(4), silence(10), sine(5), noise(5)]) {
    const prediction = await discrete(window);
    for (const emotions of Object.values(prediction.models)) {
      assert.ok(Math.max(...Object.values(emotions)) < 0.38, JSON.stringify(emotions));
    }
  }
});

test('clips overtake queued streams and long recordings', async (t) => {
  const one = await start(t, { workers: 1 });
  const order: string[] = [];
  const submit = (priority: 'discrete' | 'stream' | 'asynch') =>
    one.classifyWindow(noise(2), { priority }).then(() => order.push(priority));
  const work = (['asynch', 'asynch', 'stream', 'discrete', 'asynch'] as const).map(submit);
  assert.deepEqual(one.stats(), {
    threads: 1,
    alive: 1,
    busy: 1,
    queued: { discrete: 1, stream: 1, asynch: 2 },
    restarts: 0,
  });
  await Promise.all(work);
  assert.deepEqual(order, ['asynch', 'discrete', 'stream', 'asynch', 'asynch']);
});

test('a full queue refuses immediately with a time to retry; accepted work is finished', async (t) => {
  const one = await start(t, { workers: 1, queueLimit: 3 });
  const window = noise(10);
  let answered = false;
  const results = Array.from({ length: 8 }, () => one.classifyWindow(window, { priority: 'discrete' }));
  for (const result of results.slice(0, 4)) {
    result.then(() => {
      answered = true;
    });
  }
  const refused = await Promise.allSettled(results.slice(4));
  assert.equal(answered, false, 'the refusal did not wait for an inference');
  for (const result of refused) {
    assert.ok(result.status === 'rejected' && result.reason instanceof OverloadedError);
    const { retryAfterSeconds, message } = result.reason;
    assert.ok(Number.isInteger(retryAfterSeconds) && retryAfterSeconds >= 1);
    assert.match(
      message,
      new RegExp(`^The server is busy\\. Try again in ${retryAfterSeconds} seconds?\\.$`),
    );
  }
  for (const prediction of await Promise.all(results.slice(0, 4))) assertWellFormed(prediction, 10);
  assert.deepEqual(one.stats().queued, { discrete: 0, stream: 0, asynch: 0 });
});

test('the expected wait is proportional to the number of requests ahead', async (t) => {
  const one = await start(t, { workers: 1 });
  assert.equal(one.expectedWaitMs(0), 0);
  const single = one.expectedWaitMs(1);
  assert.ok(single > 1 && single < 60_000, `${single} ms for 5 s of sound`);
  assert.ok(Math.abs(one.expectedWaitMs(10) - 10 * single) < 1e-6);
});

test('refused requests lower the expected wait, so that it recovers after a slow period', async (t) => {
  const one = await start(t, { workers: 1 });
  const before = one.expectedWaitMs(1);
  for (let i = 0; i < 30; i++) {
    await assert.rejects(one.classifyClip({ kind: 'json', bytes: Buffer.from('no JSON') }));
  }
  assert.ok(one.expectedWaitMs(1) < before / 2, `${before} ms became ${one.expectedWaitMs(1)} ms`);
});

test('an abort removes queued work and rejects with its reason', async (t) => {
  const one = await start(t, { workers: 1 });
  const controller = new AbortController();
  const running = one.classifyWindow(noise(5), { priority: 'discrete', signal: controller.signal });
  const waiting = one.classifyWindow(noise(5), { priority: 'asynch', signal: controller.signal });
  const other = one.classifyWindow(noise(5), { priority: 'asynch' });
  const reason = new Error('the client disconnected');
  controller.abort(reason);
  assert.equal(one.stats().queued.asynch, 1);
  await assert.rejects(running, reason);
  await assert.rejects(waiting, reason);
  await assert.rejects(
    one.classifyWindow(noise(5), { priority: 'asynch', signal: controller.signal }),
    reason,
  );
  assertWellFormed(await other, 5);
});

test('close() finishes accepted work and refuses the rest', async (t) => {
  const two = await start(t, { workers: 2 });
  const accepted = Array.from({ length: 6 }, (_, i) =>
    two.classifyWindow(noise(2), { priority: i % 2 === 0 ? 'discrete' : 'asynch' }),
  );
  const closed = two.close();
  await assert.rejects(two.classifyWindow(noise(2), { priority: 'discrete' }), ClosedError);
  await assert.rejects(two.classifyClip({ kind: 'json', bytes: new Uint8Array(2) }), ClosedError);
  for (const prediction of await Promise.all(accepted)) assertWellFormed(prediction, 2);
  await closed;
  assert.equal(two.close(), closed);
  assert.equal(two.stats().alive, 0);
});

test('both sets of weights work', async (t) => {
  const open = await start(t, { modelsDir: DEFAULT_MODELS_DIR, workers: 1, weights: 'open' });
  assert.equal(open.weightsName, 'open');
  assert.equal(open.weights.commercial_use, true);
  assertWellFormed(await open.classifyWindow(vowels(5), { priority: 'discrete' }), 5);
});

test('start() rejects invalid options by name', async () => {
  await assert.rejects(Classifier.start({ workers: 0 }), /workers must be a positive integer/);
  await assert.rejects(Classifier.start({ queueLimit: 1.5 }), /queueLimit must be a positive integer/);
});
