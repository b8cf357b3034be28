import assert from 'node:assert/strict';
import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DEFAULT_MODELS_DIR, readCatalog } from '@undertone/classifier';

/** A custom models folder: the weights `open` renamed to `house`, without the model `7emotions`. */
export async function makeOwnModels(folder: string): Promise<string> {
  const { version, models, weights } = await readCatalog();
  const { open } = weights;
  assert.ok(open);
  await symlink(join(DEFAULT_MODELS_DIR, open.file), join(folder, open.file));
  const own = { version, models: models.filter(({ id }) => id !== '7emotions'), weights: { house: open } };
  await writeFile(join(folder, 'catalog.json'), JSON.stringify(own));
  return folder;
}
