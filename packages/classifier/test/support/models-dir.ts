import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type Catalog, DEFAULT_MODELS_DIR } from '../../src/index.ts';

/** A copy of the models folder with a changed catalogue. The graph can be removed and restored. */
export async function copyModels(t: TestContext, change: (catalog: Catalog) => void = () => undefined) {
  const modelsDir = await mkdtemp(join(tmpdir(), 'undertone-models-'));
  t.after(() => rm(modelsDir, { recursive: true }));
  const catalog: Catalog = JSON.parse(await readFile(join(DEFAULT_MODELS_DIR, 'catalog.json'), 'utf8'));
  change(catalog);
  await writeFile(join(modelsDir, 'catalog.json'), JSON.stringify(catalog));
  const graph = join(modelsDir, 'research.onnx');
  const restore = () => copyFile(join(DEFAULT_MODELS_DIR, 'research.onnx'), graph);
  await restore();
  return { modelsDir, takeAway: () => rm(graph), restore };
}
