// A thread of bare-model.ts: receives a number of windows, runs them and replies with the milliseconds they took.
import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { MODEL_SAMPLE_RATE } from '@undertone/audio';
import { DEFAULT_MODELS_DIR, pickWeights, readCatalog } from '@undertone/classifier';
import { Tensor } from 'onnxruntime-node';
import { openSession } from '../../packages/classifier/src/session.ts';
import { voiceLike } from './voice.ts';

// The priority of the server's inference threads, so that other load on the machine slows both equally.
if (process.platform === 'linux') setPriority(0, 5);

const { file } = pickWeights(await readCatalog(), 'research');
const session = await openSession(`${DEFAULT_MODELS_DIR}/${file}`);
const samples = voiceLike(5, MODEL_SAMPLE_RATE);
const input = { samples: new Tensor('float32', samples, [1, samples.length]) };
for (let i = 0; i < 3; i++) await session.run(input);

parentPort?.on('message', async (windows: number) => {
  if (windows === 0) {
    await session.release();
    parentPort?.close();
    return;
  }
  const start = performance.now();
  for (let i = 0; i < windows; i++) await session.run(input);
  parentPort?.postMessage(performance.now() - start);
});
parentPort?.postMessage('ready');
