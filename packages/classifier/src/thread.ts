/** Runs inside an inference thread: one session, one batch at a time. */
import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { type InferenceSession, Tensor } from 'onnxruntime-node';
import { Activity, type FromThread, SAMPLES_INPUT, type ThreadData, type ToThread } from './protocol.ts';
import { openSession } from './session.ts';

const { modelPath, outputs, ...shared } = workerData as ThreadData;
const activity = new Int32Array(shared.activity);
const input = new Float32Array(shared.input);
const names = Object.keys(outputs);

// With as many threads as cores the main thread would wait its turn behind inferences, and everybody behind it. On Linux
// this lowers the priority of this thread alone; elsewhere it would be the whole process's.
if (process.platform === 'linux') setPriority(0, 5);

function say(message: FromThread): void {
  parentPort?.postMessage(message);
}

function leaveRuntime(): void {
  Atomics.store(activity, 0, Activity.Idle);
  Atomics.notify(activity, 0);
}

async function run(session: InferenceSession, batch: number, length: number) {
  const samples = new Tensor('float32', input.subarray(0, batch * length), [batch, length]);
  const started = performance.now();
  const results = await session.run({ [SAMPLES_INPUT]: samples }, names);
  const inferenceMs = performance.now() - started;
  const columns = names.map((name) => {
    const data = results[name]?.data;
    if (!(data instanceof Float32Array) || data.length !== batch * (outputs[name] ?? 0)) {
      throw new Error(`output "${name}" of the graph has not the shape the catalogue promises`);
    }
    return [name, data] as const;
  });
  return { inferenceMs, outputs: Object.fromEntries(columns) };
}

/** The first run allocates and is slow; the second says how fast this machine is, before anybody waits for it. */
async function warmUp(session: InferenceSession) {
  const warmUpSamples = 80_000;
  await run(session, 1, 16_000);
  const { inferenceMs } = await run(session, 1, warmUpSamples);
  return { warmUpMs: inferenceMs, warmUpSamples };
}

function serve(session: InferenceSession): void {
  parentPort?.on('message', async (message: ToThread) => {
    if (message.kind === 'run') {
      const { id, batch, length } = message;
      try {
        const done = await run(session, batch, length);
        leaveRuntime();
        say({ kind: 'done', id, ...done });
      } catch (error) {
        leaveRuntime();
        say({ kind: 'failed', id, message: error instanceof Error ? error.message : String(error) });
      }
    } else if (message.kind === 'stop') {
      await session.release();
      parentPort?.close();
    } else {
      throw new TypeError('An inference thread was sent a message it does not know');
    }
  });
}

try {
  const session = await openSession(modelPath);
  const measured = await warmUp(session);
  serve(session);
  leaveRuntime();
  say({ kind: 'ready', ...measured });
} catch (error) {
  leaveRuntime();
  say({ kind: 'unusable', message: error instanceof Error ? error.message : String(error) });
  parentPort?.close();
}
