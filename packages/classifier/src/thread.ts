/** Runs inside an inference thread: one session of the ONNX runtime, one task at a time. */
import { getPriority, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import {
  AudioError,
  decodeBlock,
  MAX_CLIP_SAMPLES,
  MODEL_SAMPLE_RATE,
  type PcmBlock,
  readClip,
  readSamplesJson,
  resampleAll,
} from '@undertone/audio';
import { DISCRETE_LIMITS } from '@undertone/contract';
import { type InferenceSession, Tensor } from 'onnxruntime-node';
import {
  Activity,
  type Classified,
  type FromThread,
  type Task,
  type TaskOutput,
  type ThreadData,
  type ToThread,
} from './protocol.ts';
import { openSession } from './session.ts';

/** Names in the graph: its input, and the output with the share of the window that is speech. */
const SAMPLES_INPUT = 'samples';
const SPEECH_OUTPUT = 'speech';

const USUAL_CLIP_SECONDS = 5;

const { modelPath, models, activity: shared } = workerData as ThreadData;
const activity = new Int32Array(shared);
const outputs = [...models.map(({ id }) => id), SPEECH_OUTPUT];

// With one thread per core, inferences would delay the main thread and with it every request. On Linux this lowers the
// priority of this thread alone; elsewhere it would affect the whole process. It is never raised: only root may.
if (process.platform === 'linux') setPriority(0, Math.max(5, getPriority(0)));

try {
  const session = await openSession(modelPath);
  checkOutputs(session);
  const warmUpMs = await warmUp(session);
  parentPort?.on('message', async (message: ToThread) => {
    if (message.kind === 'run') await answer(session, message.id, message.task);
    else if (message.kind === 'stop') {
      await session.release();
      parentPort?.close();
    } else {
      throw new TypeError('An inference thread received an unknown message');
    }
  });
  markIdle();
  send({ kind: 'ready', warmUpMs });
} catch (error) {
  markIdle();
  send({ kind: 'unusable', message: messageOf(error) });
  parentPort?.close();
}

function checkOutputs({ outputNames }: InferenceSession): void {
  const missing = outputs.find((name) => !outputNames.includes(name));
  if (missing !== undefined)
    throw new Error(`the graph has no output "${missing}", which the catalogue names`);
}

/** The first run allocates and is slow. The second measures this machine before the first request arrives. */
async function warmUp(session: InferenceSession): Promise<number> {
  for (const rate of [44_100, 48_000]) resampleAll(new Float32Array(rate), rate);
  const silence = (seconds: number) => new Float32Array(seconds * MODEL_SAMPLE_RATE);
  await run(session, { kind: 'window', data: silence(1) });
  const started = performance.now();
  await run(session, { kind: 'window', data: silence(USUAL_CLIP_SECONDS) });
  return performance.now() - started;
}

async function answer(session: InferenceSession, id: number, task: Task): Promise<void> {
  try {
    const output = await run(session, task);
    markIdle();
    send(
      { kind: 'done', id, output },
      'channels' in output ? output.channels.map(({ buffer }) => buffer) : [],
    );
  } catch (error) {
    markIdle();
    send(failure(id, error));
  }
  free(task.data);
}

async function run(session: InferenceSession, task: Task): Promise<TaskOutput> {
  const started = performance.now();
  const classify = async (
    samples: Float32Array,
    seconds: number,
    sampleRate: number,
  ): Promise<Classified> => {
    const decodeMs = performance.now() - started;
    return { ...(await infer(session, samples)), seconds, sampleRate, decodeMs };
  };
  const classifyBlock = (block: PcmBlock, seconds?: number): Promise<Classified> => {
    const [samples] = decodeBlock(block) as [Float32Array];
    free(task.data); // up to 32 MiB, not needed during inference
    return classify(samples, seconds ?? samples.length / MODEL_SAMPLE_RATE, block.format.sampleRate);
  };
  switch (task.kind) {
    case 'clip': {
      const { block, seconds } = readClip(task.data, task.pcm);
      return classifyBlock(block, seconds);
    }
    case 'json': {
      const payload = readSamplesJson(task.data);
      const rate = DISCRETE_LIMITS.payloadSampleRate;
      return classify(resampleAll(payload, rate).subarray(0, MAX_CLIP_SAMPLES), payload.length / rate, rate);
    }
    case 'samples':
      return classifyBlock(task);
    case 'decode':
      return { channels: decodeBlock(task) };
    case 'window':
      return classify(task.data, task.data.length / MODEL_SAMPLE_RATE, MODEL_SAMPLE_RATE);
  }
}

async function infer(session: InferenceSession, samples: Float32Array) {
  const input = new Tensor('float32', samples, [1, samples.length]);
  const started = performance.now();
  const results = await session.run({ [SAMPLES_INPUT]: input }, outputs);
  const inferenceMs = performance.now() - started;
  const probabilities = models.map(({ id, emotions }) => {
    const values = readOutput(results, id, emotions.length);
    return [id, Object.fromEntries(emotions.map((emotion, i) => [emotion, values[i] as number]))];
  });
  const [speech = 0] = readOutput(results, SPEECH_OUTPUT, 1);
  const speechSeconds = (Math.min(1, Math.max(0, speech)) * samples.length) / MODEL_SAMPLE_RATE;
  return { models: Object.fromEntries(probabilities), speechSeconds, inferenceMs };
}

function readOutput(results: InferenceSession.ReturnType, name: string, columns: number): Float32Array {
  const data = results[name]?.data;
  if (!(data instanceof Float32Array) || data.length !== columns) {
    throw new Error(`output "${name}" of the graph does not have the shape that the catalogue states`);
  }
  if (!data.every(Number.isFinite)) throw new Error('an output of the model is not finite');
  return data;
}

/** Releases the memory now instead of at the next garbage collection. */
function free({ buffer }: Task['data']): void {
  if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
}

function failure(id: number, error: unknown): FromThread {
  if (error instanceof AudioError) {
    const { code, message, figures } = error;
    return { kind: 'refused', id, code, message, figures };
  }
  return { kind: 'failed', id, message: messageOf(error) };
}

function send(message: FromThread, transfer: ArrayBuffer[] = []): void {
  parentPort?.postMessage(message, transfer);
}

function markIdle(): void {
  Atomics.store(activity, 0, Activity.Idle);
  Atomics.notify(activity, 0);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
