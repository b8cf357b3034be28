/** Runs inside an inference thread: one session, one task at a time. */
import { getPriority, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { AudioError, MODEL_SAMPLE_RATE, resampleAll } from '@undertone/audio';
import { Activity, type FromThread, type Outcome, type ThreadData, type ToThread } from './protocol.ts';
import { openSession } from './session.ts';
import { free, TaskRunner } from './tasks.ts';

const { modelPath, models, activity: shared } = workerData as ThreadData;
const activity = new Int32Array(shared);

// With as many threads as cores the main thread would wait its turn behind inferences, and everybody behind it. On Linux
// this lowers the priority of this thread alone; elsewhere it would be the whole process's. Never raises it: only root may.
if (process.platform === 'linux') setPriority(0, Math.max(5, getPriority(0)));

function say(message: FromThread, transfer: ArrayBuffer[] = []): void {
  parentPort?.postMessage(message, transfer);
}

function markIdle(): void {
  Atomics.store(activity, 0, Activity.Idle);
  Atomics.notify(activity, 0);
}

const USUAL_CLIP_SECONDS = 5;

/** The first run allocates and is slow; the second says how fast this machine is, before anybody waits for it. */
async function warmUp(runner: TaskRunner) {
  for (const rate of [44_100, 48_000]) resampleAll(new Float32Array(rate), rate);
  const silence = (seconds: number) => new Float32Array(seconds * MODEL_SAMPLE_RATE);
  await runner.run({ kind: 'window', data: silence(1) });
  const started = performance.now();
  await runner.run({ kind: 'window', data: silence(USUAL_CLIP_SECONDS) });
  return { warmUpMs: performance.now() - started };
}

function failure(id: number, error: unknown): FromThread {
  if (error instanceof AudioError) {
    const { code, message, figures } = error;
    return { kind: 'refused', id, code, message, figures };
  }
  return { kind: 'failed', id, message: messageOf(error) };
}

const transferable = (outcome: Outcome) =>
  'channels' in outcome ? outcome.channels.map(({ buffer }) => buffer) : [];

try {
  const session = await openSession(modelPath);
  const runner = new TaskRunner(session, models);
  const measured = await warmUp(runner);
  parentPort?.on('message', async (message: ToThread) => {
    if (message.kind === 'run') {
      const { id, task } = message;
      try {
        const outcome = await runner.run(task);
        markIdle();
        say({ kind: 'done', id, outcome }, transferable(outcome));
      } catch (error) {
        markIdle();
        say(failure(id, error));
      }
      free(task.data);
    } else if (message.kind === 'stop') {
      await session.release();
      parentPort?.close();
    } else {
      throw new TypeError('An inference thread was sent a message it does not know');
    }
  });
  markIdle();
  say({ kind: 'ready', ...measured });
} catch (error) {
  markIdle();
  say({ kind: 'unusable', message: messageOf(error) });
  parentPort?.close();
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
