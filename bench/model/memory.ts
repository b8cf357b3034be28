/** Child process of run.ts: resident memory of one graph on one thread. */
import { Tensor } from 'onnxruntime-node';
import { openSession } from '../../packages/classifier/src/session.ts';

const rss = () => Math.round(process.memoryUsage.rss() / 1e6);
const before = rss();
const session = await openSession(process.argv[2] ?? '');
const loaded = rss();

async function after(seconds: number, batch: number): Promise<number> {
  const length = seconds * 16_000;
  const samples = new Tensor('float32', new Float32Array(batch * length), [batch, length]);
  for (let i = 0; i < 3; i++) await session.run({ samples });
  return rss();
}

console.log(
  JSON.stringify({
    before,
    loaded,
    '5 s': await after(5, 1),
    '10 s': await after(10, 1),
    '10 s x 8': await after(10, 8),
  }),
);
