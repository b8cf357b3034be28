import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { TEST_MODELS } from '@undertone/testing/paths';
import type { Catalog } from '../../src/index.ts';

/** A copy of the test models with a changed catalogue. The graph can be removed and restored. */
export async function copyModels(t: TestContext, change: (catalog: Catalog) => void = () => undefined) {
  const modelsDir = await mkdtemp(join(tmpdir(), 'undertone-models-'));
  t.after(() => rm(modelsDir, { recursive: true }));
  const catalog: Catalog = JSON.parse(await readFile(join(TEST_MODELS, 'catalog.json'), 'utf8'));
  change(catalog);
  await writeFile(join(modelsDir, 'catalog.json'), JSON.stringify(catalog));
  const graph = join(modelsDir, 'research.onnx');
  const restore = () => copyFile(join(TEST_MODELS, 'research.onnx'), graph);
  await restore();
  return { modelsDir, takeAway: () => rm(graph), restore };
}
