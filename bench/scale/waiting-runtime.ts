// A model that sleeps instead of computing. It shows how the service around the model scales with the number of workers, even
// on a machine with few cores.
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

const WAIT_MS = Number(process.env['BENCH_WAIT_MS']);
const WINDOW_SAMPLES = 5 * 16_000;

export class Tensor {
  readonly data: Float32Array;

  constructor(_type: string, data: Float32Array, _dims: number[]) {
    this.data = data;
  }
}

export const InferenceSession = {
  create: async (modelPath: string) => {
    const catalog = JSON.parse(await readFile(new URL('catalog.json', `file://${modelPath}`), 'utf8'));
    const models = (catalog.models as { id: string; emotions: string[] }[]).map(
      ({ id, emotions }) => [id, emotions.length] as const,
    );
    const columns = new Map([...models, ['speech', 1] as const]);
    return {
      outputNames: [...columns.keys()],
      run: async ({ samples }: { samples: Tensor }) => {
        await sleep((WAIT_MS * samples.data.length) / WINDOW_SAMPLES);
        const flat = (count: number) => ({ data: new Float32Array(count).fill(1 / count) });
        return Object.fromEntries([...columns].map(([name, count]) => [name, flat(count)]));
      },
      release: async () => undefined,
    };
  },
};
