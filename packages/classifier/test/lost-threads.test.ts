import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { TEST_MODELS } from '@undertone/testing/paths';
import { writeWav } from '@undertone/testing/wav';
import { NoThreadsError, pickWeights, readCatalog, verifyWeights, WorkerFailedError } from '../src/index.ts';
import { InferenceThread } from '../src/inference-thread.ts';
import { copyModels } from './support/models-dir.ts';
import { noise, vowels } from './support/sounds.ts';
import { kill, start, until } from './support/threads.ts';

test('a thread that dies during a task is replaced, and another one retries the task', async (t) => {
  const { classifier, threads } = await start(t, { workers: 2 });
  kill(threads()[0]);
  const work = Array.from({ length: 8 }, (_, i) =>
    classifier.classifyWindow(noise(2, i + 1), { priority: i % 2 === 0 ? 'discrete' : 'asynch' }),
  );
  assert.equal(classifier.stats().busy, 2);
  const answers = await Promise.all(work);
  assert.equal(answers.length, 8);
  await until(() => classifier.stats().alive === 2, 'the replacement');
  const { restarts, busy, threads: configured } = classifier.stats();
  assert.deepEqual({ restarts, busy, configured }, { restarts: 1, busy: 0, configured: 2 });
});

test('a clip whose thread dies is retried by the next one, files and JSON samples alike', async (t) => {
  const { classifier, threads } = await start(t, { workers: 1 });
  const samples = vowels(4.5, 140, 44_100);
  const file = { kind: 'file', bytes: writeWav(samples, { encoding: 'float32' }) } as const;
  const json = { kind: 'json', bytes: Buffer.from(JSON.stringify({ payload: [[...samples]] })) } as const;
  const expected = await classifier.classifyClip(file);
  kill(threads().at(-1));
  assert.deepEqual((await classifier.classifyClip(json)).models, expected.models);
  kill(threads().at(-1));
  assert.deepEqual((await classifier.classifyClip(file)).models, expected.models);
  assert.equal(classifier.stats().restarts, 2);
});

test('a thread gets a copy of the bytes, also of a Buffer, so that the task can be retried', async (t) => {
  const catalog = await readCatalog(TEST_MODELS);
  const modelPath = await verifyWeights(TEST_MODELS, pickWeights(catalog, 'open'));
  const thread = await InferenceThread.start({ modelPath, models: catalog.models });
  t.after(() => thread.stop());
  for (const data of [Buffer.from('{}'), Buffer.alloc(1_000_000, ' '), new Uint8Array(1_000_000)]) {
    const { length } = data;
    await assert.rejects(thread.run({ kind: 'json', data }), { code: 'bad_request' });
    assert.equal(data.length, length);
  }
});

test('an idle thread that dies is replaced', async (t) => {
  const { classifier, threads } = await start(t, { workers: 1 });
  kill(threads()[0]);
  await until(() => classifier.stats().restarts === 1 && classifier.stats().alive === 1, 'the replacement');
  await classifier.classifyWindow(noise(1), { priority: 'discrete' });
});

test('a task that makes two threads hang is refused, and others continue', async (t) => {
  const { classifier } = await start(t, { workers: 1 });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let outcome: unknown;
  const work = classifier.classifyWindow(noise(10), { priority: 'discrete' });
  work.catch((error: unknown) => {
    outcome = error;
  });
  // Every task times out immediately.
  while (outcome === undefined) {
    if (classifier.stats().busy > 0) t.mock.timers.tick(30_000);
    await setImmediate();
  }
  t.mock.timers.reset();
  assert.ok(outcome instanceof WorkerFailedError, String(outcome));
  assert.match(outcome.message, /gave no answer for 30000 ms/);
  await classifier.classifyWindow(noise(1), { priority: 'discrete' });
  assert.equal(classifier.stats().restarts, 2);
});

test('while no thread can be started, clips and streams are refused and long recordings wait', async (t) => {
  const { modelsDir, takeAway, restore } = await copyModels(t);
  const { classifier, threads } = await start(t, { workers: 1, modelsDir });
  await takeAway();
  kill(threads()[0]);
  const abort = new AbortController();
  const waiting = classifier.classifyWindow(noise(1), { priority: 'asynch' });
  const givenUp = classifier.classifyWindow(noise(1), { priority: 'asynch', signal: abort.signal });
  // The first one waits in the queue until starting a thread has failed. The others are refused immediately.
  for (const priority of ['discrete', 'stream', 'discrete'] as const) {
    await assert.rejects(classifier.classifyWindow(noise(1), { priority }), NoThreadsError);
  }
  const late = classifier.classifyWindow(noise(1), { priority: 'asynch' });
  const { alive, threads: configured, queued } = classifier.stats();
  assert.deepEqual([alive, configured, queued.asynch], [0, 1, 3]);
  abort.abort(new Error('not wanted any more'));
  await assert.rejects(givenUp, { message: 'not wanted any more' });
  await restore();
  const [first, second] = await Promise.all([waiting, late]);
  assert.deepEqual(first.models, second.models);
  await classifier.classifyWindow(noise(1), { priority: 'discrete' });
});

test('close() resolves while work waits for a thread that cannot be started', async (t) => {
  const { modelsDir, takeAway } = await copyModels(t);
  const { classifier, threads } = await start(t, { workers: 1, modelsDir });
  await takeAway();
  kill(threads()[0]);
  const waiting = classifier.classifyWindow(noise(1), { priority: 'asynch' });
  await Promise.all([assert.rejects(waiting, NoThreadsError), classifier.close()]);
});

const run = promisify(execFile);
const inProcess = (body: string) =>
  run(
    process.execPath,
    [
      '--input-type=module',
      '--eval',
      `import { Classifier } from ${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)};
       const classifier = await Classifier.start({ modelsDir: ${JSON.stringify(TEST_MODELS)}, workers: 2 });
       const window = new Float32Array(160_000);
       ${body}`,
    ],
    { timeout: 180_000 },
  );

test('after close() nothing keeps the process alive', async () => {
  const { stdout, stderr } = await inProcess(`
    await classifier.classifyWindow(window, { priority: 'asynch' });
    await classifier.close();
    process.on('exit', () => console.log('ended by itself'));`);
  assert.equal(stdout, 'ended by itself\n');
  assert.equal(stderr, '');
});

test('a process that exits during inference has its own exit code and does not crash', async () => {
  const exit = inProcess(`
    classifier.classifyWindow(window, { priority: 'discrete' });
    classifier.classifyWindow(window, { priority: 'discrete' });
    setTimeout(() => process.exit(7), 20);`);
  await assert.rejects(exit, { code: 7, signal: null, stderr: '' });
});
