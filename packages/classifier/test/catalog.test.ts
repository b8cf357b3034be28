import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import {
  Classifier,
  DEFAULT_MODELS_DIR,
  ModelFilesError,
  pickWeights,
  readCatalog,
  verifyWeights,
} from '../src/index.ts';
import { copyModels } from './support/models-dir.ts';
import { vowels } from './support/sounds.ts';

let dir: string;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'undertone-catalog-'));
});
after(() => rm(dir, { recursive: true }));

const content = Buffer.from('not a graph');
const weights = {
  file: 'research.onnx',
  bytes: content.length,
  sha256: createHash('sha256').update(content).digest('hex'),
  licence: 'CC BY-NC-SA 4.0',
  commercial_use: false,
  summary: 'a file for this test',
  figures: { two: { uar: 0.9, accuracy: 0.9, macro_f1: 0.9, ece: 0.05, split: 'unseen speakers' } },
};
const valid = {
  version: '1',
  models: [{ id: 'two', emotions: ['sad', 'happy'] }],
  weights: { research: weights },
};

async function writeCatalog(value: unknown): Promise<void> {
  await writeFile(join(dir, 'catalog.json'), typeof value === 'string' ? value : JSON.stringify(value));
}

const refusal = (...words: (string | RegExp)[]) => {
  return (error: unknown) => {
    assert.ok(error instanceof ModelFilesError, String(error));
    for (const word of words) assert.match(error.message, word instanceof RegExp ? word : new RegExp(word));
    return true;
  };
};

test('the shipped catalogue has models with 4, 5 and 7 emotions, and weights that match their checksums', async () => {
  const catalog = await readCatalog();
  const sizes = catalog.models.map(({ id, emotions }) => [id, emotions.length]);
  assert.deepEqual(sizes, [
    ['4emotions', 4],
    ['5emotions', 5],
    ['7emotions', 7],
  ]);
  for (const { emotions } of catalog.models) {
    assert.deepEqual(emotions.slice(0, 4), ['angry', 'happy', 'neutral', 'sad']);
  }
  assert.equal(pickWeights(catalog, 'research').commercial_use, false);
  assert.equal(pickWeights(catalog, 'open').commercial_use, true);
  for (const entry of Object.values(catalog.weights)) {
    assert.ok(entry.bytes <= 60 * 1024 * 1024, `${entry.file} is too large to ship`);
    assert.equal(await verifyWeights(DEFAULT_MODELS_DIR, entry), join(DEFAULT_MODELS_DIR, entry.file));
  }
});

test('a missing catalogue is reported, with how to fix it', async () => {
  await assert.rejects(
    readCatalog(join(dir, 'nowhere')),
    refusal('nowhere/catalog.json', 'ENOENT', /How to fix: restore the models/),
  );
});

test('a catalogue that is not JSON is reported', async () => {
  await writeCatalog('{"version": ');
  await assert.rejects(readCatalog(dir), refusal('catalog.json is not JSON'));
});

test('an invalid catalogue field is reported with its path', async () => {
  const cases: [unknown, RegExp][] = [
    [[], /the file must be object/],
    [{ ...valid, version: 1 }, /version must be string/],
    [{ ...valid, models: [] }, /models must not have fewer than 1 items/],
    [{ ...valid, models: [{ id: '', emotions: ['a', 'b'] }] }, /models\.0\.id must/],
    [
      { ...valid, models: [{ id: 'two', emotions: ['a', 'a'] }] },
      /models\.0\.emotions must not have duplicate items/,
    ],
    [{ ...valid, weights: {} }, /weights must not have fewer than 1 properties/],
    [
      { ...valid, weights: { research: { ...weights, file: '../x.onnx' } } },
      /weights\.research\.file must match pattern/,
    ],
    [{ ...valid, weights: { research: { ...weights, bytes: -1 } } }, /weights\.research\.bytes must be >= 1/],
    [
      { ...valid, weights: { research: { ...weights, sha256: 'abc' } } },
      /weights\.research\.sha256 must match pattern/,
    ],
    [
      { ...valid, weights: { research: { ...weights, commercial_use: 'no' } } },
      /weights\.research\.commercial_use must be boolean/,
    ],
    [
      {
        ...valid,
        weights: { research: { ...weights, figures: { two: { ...weights.figures.two, uar: 2 } } } },
      },
      /weights\.research\.figures\.two\.uar must be <= 1/,
    ],
  ];
  for (const [value, message] of cases) {
    await writeCatalog(value);
    await assert.rejects(readCatalog(dir), refusal(message));
  }
});

test('any JSON gives a catalogue or a ModelFilesError', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.jsonValue(),
      fc.constantFrom('version', 'models', 'weights', ''),
      async (json, key) => {
        await writeCatalog(JSON.stringify(key === '' ? json : { ...valid, [key]: json }));
        await readCatalog(dir).catch((error: unknown) =>
          assert.ok(error instanceof ModelFilesError, String(error)),
        );
      },
    ),
    { numRuns: 150, seed: 4 },
  );
});

test('figures by corpus are optional', async () => {
  await writeCatalog(valid);
  const { figures } = pickWeights(await readCatalog(dir), 'research');
  assert.deepEqual(figures['two'], { ...weights.figures.two, new_speakers: {}, never_heard: {} });
});

test('unknown weights are refused with the known names', async () => {
  await writeCatalog(valid);
  const catalog = await readCatalog(dir);
  assert.throws(() => pickWeights(catalog, 'open'), refusal('"open"', 'the catalogue has: research'));
  assert.throws(() => pickWeights(catalog, 'constructor'), refusal('"constructor"'));
});

test('start() rejects a missing, truncated or altered model file by name', async () => {
  await writeCatalog(valid);
  const path = join(dir, 'research.onnx');
  const start = () => Classifier.start({ modelsDir: dir, workers: 1 });
  await rm(path, { force: true });
  await assert.rejects(start(), refusal('research.onnx cannot be read', 'ENOENT', /restore/));
  await writeFile(path, content.subarray(1));
  await assert.rejects(start(), refusal('research.onnx has 10 bytes; catalog.json states 11', /incomplete/));
  await writeFile(path, 'NOT a graph');
  await assert.rejects(start(), refusal('research.onnx has SHA-256', weights.sha256, /damaged/));
});

test('start() rejects a file that is not a graph and leaves no thread running', async () => {
  await writeCatalog(valid);
  await writeFile(join(dir, 'research.onnx'), content);
  await assert.rejects(
    Classifier.start({ modelsDir: dir, workers: 2 }),
    refusal('research.onnx cannot be run', /protobuf|graph|parse/i),
  );
});

test('a custom catalogue with fewer models and other weights works', async (t) => {
  const { modelsDir } = await copyModels(t, (catalog) => {
    catalog.models = catalog.models.filter(({ id }) => id === '5emotions');
    catalog.weights = { 'our-own': pickWeights(catalog, 'research') };
  });
  const classifier = await Classifier.start({ modelsDir, weights: 'our-own', workers: 1 });
  t.after(() => classifier.close());
  assert.equal(classifier.weightsName, 'our-own');
  const { models } = await classifier.classifyWindow(vowels(4), { priority: 'discrete' });
  assert.deepEqual(Object.keys(models), ['5emotions']);
  await assert.rejects(Classifier.start({ modelsDir, workers: 1 }), refusal('"research"', 'has: our-own'));
});

test('start() rejects a catalogue that does not match the outputs of the graph', async (t) => {
  const { modelsDir } = await copyModels(t, ({ models }) => {
    models.push({ id: '9emotions', emotions: ['angry', 'happy'] });
  });
  await assert.rejects(
    Classifier.start({ modelsDir, workers: 1 }),
    refusal('research.onnx cannot be run', 'no output "9emotions"'),
  );
  const other = await copyModels(t, ({ models }) => {
    models[0]?.emotions.push('sleepy');
  });
  await assert.rejects(
    Classifier.start({ modelsDir: other.modelsDir, workers: 1 }),
    refusal('research.onnx cannot be run', 'output "4emotions"', /shape/),
  );
});
