// A custom models folder: fewer models than the contract names, and weights with another name.
import assert from 'node:assert/strict';
import { readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { Classifier, ModelFilesError } from '@undertone/classifier';
import { API_KEY_HEADER, type ModelList, PATHS } from '@undertone/contract';
import { postFile, readProblem, tempDir, testApp } from '@undertone/testing/app';
import { AsynchClient } from '@undertone/testing/asynch-client';
import { TEST_MODELS } from '@undertone/testing/paths';
import { problemOf } from '@undertone/testing/problem';
import { wav } from '@undertone/testing/wav';

async function ownModels(change: (catalog: { models: { id: string; emotions: string[] }[] }) => void) {
  const modelsDir = await tempDir();
  const catalog = JSON.parse(await readFile(join(TEST_MODELS, 'catalog.json'), 'utf8'));
  catalog.weights = { mine: { ...catalog.weights.research, file: 'mine.onnx' } };
  change(catalog);
  await symlink(join(TEST_MODELS, 'research.onnx'), join(modelsDir, 'mine.onnx'));
  await writeFile(join(modelsDir, 'catalog.json'), JSON.stringify(catalog));
  return modelsDir;
}

describe('a custom models folder with fewer models and other weights', async () => {
  const modelsDir = await ownModels((catalog) => {
    catalog.models = catalog.models.filter(({ id }) => id !== '7emotions');
  });
  const classifier = await Classifier.start({ modelsDir, weights: 'mine', workers: 1, ffmpegPath: null });
  after(() => classifier.close());
  const service = await testApp({}, { classifier });

  test('serves its models and names its weights', async () => {
    assert.equal((await postFile(service, wav())).statusCode, 200);
    const headers = { [API_KEY_HEADER]: service.key };
    const list = (await service.app.inject({ url: PATHS.models, headers })).json() as ModelList;
    assert.equal(list.weights.id, 'mine');
    assert.deepEqual(
      list.models.map(({ id }) => id),
      ['4emotions', '5emotions'],
    );
  });

  test('refuses other models with a 400 that lists its own, on both interfaces', async () => {
    const problem = readProblem(
      await postFile(service, wav(), { query: { model: '7emotions' } }),
      'unknown_model',
    );
    assert.match(problem.detail, /one of 4emotions, 5emotions\.$/);
    const client = await AsynchClient.of(service);
    await problemOf(await client.initiate({ model: '7emotions' }), 'unknown_model');
  });

  test('fails a recording whose model was removed after its upload, and says so', async () => {
    const client = await AsynchClient.of(service);
    const upload = await client.send(wav({ seconds: 6 }), 1, { model: '5emotions' });
    await client.complete(upload);
    const fewer = await Classifier.start({
      modelsDir: await ownModels((catalog) => {
        catalog.models.length = 1;
      }),
      weights: 'mine',
      workers: 1,
    });
    after(() => fewer.close());
    const later = await testApp({}, { classifier: fewer, dataDir: service.dataDir });
    later.services.worker.start();
    await problemOf(await client.settled(upload.request_id), 'unknown_model', 422);
  });
});

test('a catalogue with a model that the graph lacks stops startup', async () => {
  const modelsDir = await ownModels((catalog) => {
    catalog.models.push({ id: '9emotions', emotions: ['angry', 'happy'] });
  });
  await assert.rejects(Classifier.start({ modelsDir, weights: 'mine', workers: 1 }), (error) => {
    assert.ok(error instanceof ModelFilesError);
    assert.match(error.message, /9emotions/);
    return true;
  });
});
