import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Worker } from 'node:worker_threads';
import { Classifier, type ClassifierOptions, DEFAULT_MODELS_DIR, WorkerFailedError } from '../src/index.ts';
import { noise } from './windows.ts';

// Node tells of every thread that is made: this is how the tests get hold of the real ones.
const workers: Worker[] = [];
const remember = (worker: Worker) => workers.push(worker);
before(() => process.on('worker', remember));
after(() => process.off('worker', remember));

async function start(t: TestContext, options: ClassifierOptions) {
  const first = workers.length;
  const classifier = await Classifier.start(options);
  t.after(() => classifier.close());
  return { classifier, threads: workers.slice(first) };
}

/**
 * A message it does not know ends a thread with an error. Work that is handed over before the main thread can
 * have heard of that is in the thread's hands when it dies.
 */
const kill = (thread: Worker | undefined) => thread?.postMessage({ kind: 'nonsense' });

async function until(condition: () => boolean, what: string): Promise<void> {
  for (let waited = 0; !condition(); waited += 20) {
    assert.ok(waited < 10_000, `waited too long for: ${what}`);
    await sleep(20);
  }
}

test('a thread that dies at work is replaced, and its work is answered by another', async (t) => {
  const { classifier, threads } = await start(t, { workers: 2 });
  kill(threads[0]);
  const work = Array.from({ length: 8 }, (_, i) =>
    classifier.classify(noise(2, i + 1), { priority: i % 2 === 0 ? 'discrete' : 'asynch' }),
  );
  assert.equal(classifier.stats().busy, 2);
  const answers = await Promise.all(work);
  assert.equal(answers.length, 8);
  await until(() => classifier.stats().workers === 2, 'the replacement');
  assert.equal(classifier.stats().restarts, 1);
  assert.equal(classifier.stats().busy, 0);
});

test('when all threads die at once everything is still answered', async (t) => {
  const { classifier, threads } = await start(t, { workers: 2 });
  for (const thread of threads) kill(thread);
  const work = Array.from({ length: 6 }, (_, i) =>
    classifier.classify(noise(1, i + 1), { priority: 'discrete' }),
  );
  await Promise.all(work);
  await until(() => classifier.stats().workers === 2, 'the replacements');
  assert.equal(classifier.stats().restarts, 2);
});

test('an idle thread that dies is replaced too', async (t) => {
  const { classifier, threads } = await start(t, { workers: 1 });
  kill(threads[0]);
  await until(() => classifier.stats().restarts === 1 && classifier.stats().workers === 1, 'the replacement');
  await classifier.classify(noise(1), { priority: 'discrete' });
});

test('work over which two threads were given up as stuck is refused, and the rest goes on', async (t) => {
  // Every inference takes longer than a millisecond, so every thread counts as stuck.
  const { classifier } = await start(t, { workers: 1, stuckAfterMs: 1 });
  const work = Array.from({ length: 2 }, () => classifier.classify(noise(5), { priority: 'discrete' }));
  for (const result of await Promise.allSettled(work)) {
    assert.ok(
      result.status === 'rejected' && result.reason instanceof WorkerFailedError,
      JSON.stringify(result),
    );
    assert.match(result.reason.message, /gave no answer for 1 ms/);
  }
  await until(() => classifier.stats().restarts === 4, 'a replacement for each thread given up');
});

test('when no thread can be started all work is refused, until one can be again', async (t) => {
  const modelsDir = await mkdtemp(join(tmpdir(), 'undertone-models-'));
  t.after(() => rm(modelsDir, { recursive: true }));
  const model = join(modelsDir, 'research.onnx');
  const restore = () => copyFile(join(DEFAULT_MODELS_DIR, 'research.onnx'), model);
  await copyFile(join(DEFAULT_MODELS_DIR, 'catalog.json'), join(modelsDir, 'catalog.json'));
  await restore();
  const { classifier, threads } = await start(t, { workers: 1, modelsDir });
  await rm(model);
  kill(threads[0]);
  await assert.rejects(classifier.classify(noise(1), { priority: 'discrete' }), WorkerFailedError);
  await assert.rejects(classifier.classify(noise(1), { priority: 'asynch' }), WorkerFailedError);
  assert.equal(classifier.stats().workers, 0);
  await restore();
  await until(() => classifier.stats().workers === 1, 'a thread that starts');
  await classifier.classify(noise(1), { priority: 'discrete' });
});

const run = promisify(execFile);
const inProcess = (body: string) =>
  run(
    process.execPath,
    [
      '--input-type=module',
      '--eval',
      `import { Classifier } from ${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)};
       const classifier = await Classifier.start({ workers: 2 });
       const window = new Float32Array(160_000);
       ${body}`,
    ],
    { timeout: 20_000 },
  );

test('after close() nothing keeps the process alive', async () => {
  const { stdout, stderr } = await inProcess(`
    await classifier.classify(window, { priority: 'asynch' });
    await classifier.close();
    process.on('exit', () => console.log('ended by itself'));`);
  assert.equal(stdout, 'ended by itself\n');
  assert.equal(stderr, '');
});

test('a process that exits while threads are at work ends with its own code, not with a crash', async () => {
  const exit = inProcess(`
    classifier.classify(window, { priority: 'discrete' });
    classifier.classify(window, { priority: 'discrete' });
    setTimeout(() => process.exit(7), 20);`);
  await assert.rejects(exit, { code: 7, signal: null, stderr: '' });
});
