import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { API_KEY_HEADER, type DiscreteResult, MODELS, PATHS } from '@undertone/contract';
import { DiscreteResult as DiscreteResultSchema } from '@undertone/contract/schemas';
import { postFile, postJson, readProblem, testApp } from '@undertone/testing/app';
import { FORM_TYPE, fileForm, form } from '@undertone/testing/form';
import { samplesOf, wav } from '@undertone/testing/wav';
import type { LightMyRequestResponse } from 'fastify';
import Value from 'typebox/value';

const service = await testApp();

function readResult(
  response: LightMyRequestResponse,
  model: keyof typeof MODELS = '4emotions',
): DiscreteResult {
  assert.equal(response.statusCode, 200, response.body);
  assert.match(String(response.headers['content-type']), /^application\/json/);
  const result = response.json() as DiscreteResult;
  assert.ok(Value.Check(DiscreteResultSchema, result), response.body);
  assert.deepEqual(Object.keys(result), ['main_emotion', 'confidence', 'all_predictions']);
  assert.deepEqual(Object.keys(result.all_predictions), MODELS[model]);
  const values = Object.values(result.all_predictions);
  assert.equal(result.confidence, Math.max(...values));
  assert.equal(result.all_predictions[result.main_emotion], result.confidence);
  assert.ok(Math.abs(values.reduce((sum, value) => sum + value, 0) - 1) < 1e-9);
  return result;
}

function assertClose(a: DiscreteResult, b: DiscreteResult, within: number): void {
  for (const [emotion, value] of Object.entries(a.all_predictions)) {
    const other = b.all_predictions[emotion as keyof DiscreteResult['all_predictions']] ?? Number.NaN;
    assert.ok(Math.abs(value - other) <= within, `${emotion}: ${value} and ${other}`);
  }
}

describe('a clip as a file', () => {
  test('gets the same answer under both paths', async () => {
    const long = readResult(await postFile(service, wav()));
    const short = readResult(await postFile(service, wav(), { url: PATHS.discreteShort }));
    assert.deepEqual(long, short);
  });

  test('is classified by the requested model', async () => {
    for (const model of ['4emotions', '5emotions', '7emotions'] as const) {
      readResult(await postFile(service, wav(), { query: { model } }), model);
    }
  });

  test('has the request id, timings and seconds of speech in headers', async () => {
    const { headers } = await postFile(service, wav(), { headers: { 'x-request-id': 'my-own.id_1' } });
    assert.equal(headers['x-request-id'], 'my-own.id_1');
    assert.match(
      String(headers['server-timing']),
      /^receive;dur=[\d.]+, queue;dur=[\d.]+, decode;dur=[\d.]+, model;dur=[\d.]+, total;dur=[\d.]+$/,
    );
    const seconds = Number(headers['x-speech-seconds']);
    assert.ok(seconds >= 0 && seconds <= 5);
    assert.equal(headers['cache-control'], 'no-store');
  });

  test('with details=true, has them in the body too, with model and weights', async () => {
    const plain = readResult(await postFile(service, wav()));
    const response = await postFile(service, wav(), { query: { details: 'true', model: '4emotions' } });
    assert.equal(response.statusCode, 200);
    const { model, weights, duration_seconds, speech_seconds, request_id, ...result } = response.json();
    assert.deepEqual(result, plain);
    assert.deepEqual([model, weights, duration_seconds], ['4emotions', 'research', 5]);
    assert.equal(speech_seconds, Number(response.headers['x-speech-seconds']));
    assert.equal(request_id, response.headers['x-request-id']);
  });

  test('gets a new request id if its own is unsafe in a log', async () => {
    for (const id of ['two words', 'x'.repeat(200), 'a"b', 'ä']) {
      const { headers } = await postFile(service, wav(), { headers: { 'x-request-id': id } });
      assert.match(String(headers['x-request-id']), /^[0-9a-f-]{36}$/);
    }
  });

  test('may be as short and as long as the limits, plus 50 ms of tolerance', async () => {
    for (const seconds of [3.96, 4, 10, 10.04])
      readResult(await postFile(service, wav({ seconds, rate: 16_000 })));
  });

  test('silence and a pure tone get a 200', async () => {
    readResult(await postFile(service, wav({ sound: () => 0 })));
    readResult(await postFile(service, wav({ sound: (t) => Math.sin(2 * Math.PI * 440 * t) })));
  });

  test('stereo gets the same answer as mono', async () => {
    const mono = readResult(await postFile(service, wav()));
    const stereo = readResult(await postFile(service, wav({ channels: 2 })));
    assertClose(mono, stereo, 0.001);
  });

  test('a model sent as a form field is refused with a hint to use the query', async () => {
    const file = { name: 'file', fileName: 'voice.wav', type: 'audio/wav', content: wav() };
    const model = { name: 'model', content: '7emotions' };
    for (const parts of [
      [model, file],
      [file, model],
    ]) {
      const response = await postFile(service, '', { payload: form(...parts) });
      assert.match(readProblem(response, 'bad_request').detail, /\?model=/);
    }
  });

  test('is found between other parts of the form', async () => {
    const content = wav();
    const note = { name: 'note', content: 'hello'.repeat(1000) };
    const other = {
      name: 'attachment',
      fileName: 'b.wav',
      type: 'audio/wav',
      content: Buffer.alloc(300_000, 1),
    };
    const file = { name: 'file', fileName: 'a.wav', type: 'audio/wav', content };
    const alone = readResult(await postFile(service, content));
    const payload = form(note, other, file, other, note, {
      ...file,
      content: 'a second file is not looked at',
    });
    assert.deepEqual(readResult(await postFile(service, content, { payload })), alone);
  });

  test('may have no file name, or an odd one', async () => {
    const content = wav();
    const bare = form({ name: 'file', type: 'audio/wav', content });
    const odd = form({
      name: 'file',
      fileName: '../../etc/päßwd\u0000.wav',
      type: 'application/x-y',
      content,
    });
    for (const payload of [bare, odd]) readResult(await postFile(service, content, { payload }));
  });
});

describe('a clip as JSON samples', () => {
  const samples = samplesOf({ seconds: 4.5 });
  const object = JSON.stringify({ payload: [samples] });

  test('gets the same answer as the file, as a JSON string and as an object', async () => {
    const file = readResult(await postFile(service, wav({ seconds: 4.5 })));
    const asString = readResult(await postJson(service, JSON.stringify(object)));
    const asObject = readResult(await postJson(service, object));
    assert.deepEqual(asString, asObject);
    assertClose(file, asString, 0.03);
  });

  test('works on the short path and with any model', async () => {
    const response = await postJson(service, object, {
      url: PATHS.discreteShort,
      query: { model: '7emotions' },
    });
    readResult(response, '7emotions');
  });

  test('the 198,450 samples that clients prepare are enough', async () => {
    assert.equal(samples.length, 198_450);
    readResult(
      await postJson(service, JSON.stringify(object), {
        headers: { 'content-type': 'application/json; charset=utf-8' },
      }),
    );
  });

  test('overshoot up to 2 is clipped', async () => {
    const loud = samples.map((value, i) => (i % 1000 === 0 ? 2 : value));
    const clipped = samples.map((value, i) => (i % 1000 === 0 ? 1 : value));
    const [a, b] = [loud, clipped].map((list) => JSON.stringify({ payload: [list] }));
    assert.deepEqual(
      readResult(await postJson(service, a as string)),
      readResult(await postJson(service, b as string)),
    );
  });
});

test('no audio is left in the data folder', async () => {
  await postFile(service, wav());
  const files = await readdir(service.dataDir);
  assert.deepEqual(
    files.filter((file) => !file.startsWith('undertone.db')),
    ['presign.key'],
  );
});

test('SERVICE_API_KEY is accepted beside stored keys', async () => {
  const both = await testApp({ SERVICE_API_KEY: 'from-the-environment' });
  for (const key of [both.key, 'from-the-environment']) {
    const response = await both.app.inject({
      method: 'POST',
      url: PATHS.discrete,
      headers: { [API_KEY_HEADER]: key, 'content-type': FORM_TYPE },
      payload: fileForm(wav()),
    });
    readResult(response);
  }
});
