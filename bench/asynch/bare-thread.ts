import { parentPort, workerData } from 'node:worker_threads';
import { resampleAll } from '@undertone/audio';
import { DEFAULT_MODELS_DIR, readCatalog } from '@undertone/classifier';
import { Tensor } from 'onnxruntime-node';
import { openSession } from '../../packages/classifier/src/session.ts';
import { voiceLikeWav } from '../discrete/clip.ts';

const { windows } = workerData as { windows: number };
const { weights } = await readCatalog();
const session = await openSession(`${DEFAULT_MODELS_DIR}/${weights['research']?.file}`);
const wav = voiceLikeWav(5);
const pcm = Float32Array.from(
  { length: (wav.length - 44) / 2 },
  (_, i) => wav.readInt16LE(44 + i * 2) / 32_768,
);
const samples = await resampleAll(pcm, 44_100);
const input = { samples: new Tensor('float32', samples, [1, samples.length]) };
for (let i = 0; i < 3; i++) await session.run(input);
parentPort?.once('message', async () => {
  for (let i = 0; i < windows; i++) await session.run(input);
  parentPort?.postMessage('done');
  await session.release();
});
parentPort?.postMessage('ready');
