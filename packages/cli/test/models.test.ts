import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readCatalog } from '@undertone/classifier';
import { SHIPPED, temporaryFolder, undertone } from './support/undertone.ts';

test('models shows every model with its emotions and every set of weights with its licence', async () => {
  const { code, stdout } = await undertone(['models'], { env: SHIPPED });
  assert.equal(code, 0);
  for (const line of stdout.split('\n')) assert.ok(line.length <= 80, line);
  const catalog = await readCatalog();
  for (const { id, emotions } of catalog.models) assert.ok(stdout.includes(`${id}  ${emotions.join(', ')}`));
  for (const [name, { licence, commercial_use }] of Object.entries(catalog.weights)) {
    const use = commercial_use ? 'commercial use allowed' : 'no commercial use';
    assert.match(stdout, new RegExp(`^  ${name}.*\\(${use}\\)$`, 'm'));
    assert.ok(stdout.replace(/\s+/g, ' ').includes(licence), licence);
  }
});

test('models compares the weights only on corpora that all of them share', async () => {
  const { stdout } = await undertone(['models'], { env: SHIPPED });
  const { weights } = await readCatalog();
  const [, rows = ''] = stdout.split('Side by side: UAR with 4emotions / 5emotions / 7emotions\n');
  assert.match(rows, /^ +research +open$/m);
  const percent = (name: string, model: string) =>
    ((weights[name]?.figures[model]?.new_speakers['cremad'] ?? Number.NaN) * 100).toFixed(1);
  const cells = ['research', 'open'].map((name) =>
    ['4emotions', '5emotions', '7emotions'].map((model) => percent(name, model)).join(' / '),
  );
  assert.match(rows, new RegExp(`^    cremad +${cells[0]} % +${cells[1]} %$`, 'm'));
  const known = rows.slice(0, rows.indexOf('never heard'));
  assert.doesNotMatch(known, /ravdess/, 'only one set of weights was trained on it');
  assert.match(rows.slice(known.length), /^ +meld +38\.1 \/ /m, 'conversation is included');
});

test('models --json prints the catalogue', async () => {
  const { stdout } = await undertone(['models', '--json'], { env: SHIPPED });
  assert.deepEqual(JSON.parse(stdout), await readCatalog());
});

test('a models folder without a catalogue is named in the error', async (t) => {
  const { code, stderr } = await undertone(['models', '--models-dir', await temporaryFolder(t)]);
  assert.equal(code, 1);
  assert.match(stderr, /^undertone: The model catalogue .* cannot be read/);
});
