import assert from 'node:assert/strict';
import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readCatalog } from '@undertone/classifier';
import { TEST_MODELS } from '@undertone/testing/paths';

/** A custom models folder: the weights `open` renamed to `house`, without the model `7emotions`. */
export async function makeOwnModels(folder: string): Promise<string> {
  const { version, models, weights } = await readCatalog(TEST_MODELS);
  const { open } = weights;
  assert.ok(open);
  await symlink(join(TEST_MODELS, open.file), join(folder, open.file));
  const own = { version, models: models.filter(({ id }) => id !== '7emotions'), weights: { house: open } };
  await writeFile(join(folder, 'catalog.json'), JSON.stringify(own));
  return folder;
}
