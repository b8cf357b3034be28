import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readCatalog } from '@undertone/classifier';
import { temporaryFolder, undertone } from './support/undertone.ts';

test('models shows every model with its emotions and every set of weights with its licence', async () => {
  const { code, stdout } = await undertone(['models']);
  assert.equal(code, 0);
  const catalog = await readCatalog();
  for (const { id, emotions } of catalog.models) assert.ok(stdout.includes(`${id}  ${emotions.join(', ')}`));
  for (const [name, { licence, commercial_use }] of Object.entries(catalog.weights)) {
    const use = commercial_use ? 'commercial use allowed' : 'no commercial use';
    assert.match(stdout, new RegExp(`^  ${name}.*\\(${use}\\)$`, 'm'));
    assert.ok(stdout.includes(licence));
  }
});

test('models --json is the catalogue', async () => {
  const { stdout } = await undertone(['models', '--json']);
  assert.deepEqual(JSON.parse(stdout), await readCatalog());
});

test('a models folder without a catalogue is named', async (t) => {
  const { code, stderr } = await undertone(['models', '--models-dir', await temporaryFolder(t)]);
  assert.equal(code, 1);
  assert.match(stderr, /^undertone: The model catalogue .* cannot be read/);
});
