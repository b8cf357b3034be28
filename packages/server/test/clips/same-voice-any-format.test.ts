import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { DEFAULT_MODEL, type DiscreteResult, MODELS } from '@undertone/contract';
import { postFile, shippedClassifier, tempDir, testApp } from '@undertone/testing/app';
import { type Encoding, writeWav } from '@undertone/testing/wav';

const VOICES = new URL('../../../../examples/voices/', import.meta.url);
const RATES = [16_000, 22_050, 44_100, 48_000, 96_000, 192_000];
const LOW_RATES = [8_000, 11_025];
const ENCODINGS: Encoding[] = ['pcm16', 'pcm24', 'pcm32', 'float32'];
const FORMATS = ENCODINGS.flatMap((encoding) => [1, 2].map((channels) => ({ encoding, channels })));

const names = (await readdir(VOICES)).filter((name) => name.endsWith('.wav')).sort();
const app = await testApp({}, { classifier: await shippedClassifier() });

async function classify(file: Buffer): Promise<DiscreteResult> {
  const response = await postFile(app, file);
  assert.equal(response.statusCode, 200, response.body);
  return response.json();
}

/** Every voice at every other sample rate, by an independent resampler. */
const folder = await tempDir();
const rawFile = (name: string, rate: number) => join(folder, `${name}-${rate}`);
for (const name of names) {
  const outputs = [...RATES, ...LOW_RATES].flatMap((rate) => [
    ...['-ar', String(rate), '-f', 'f32le'],
    rawFile(name, rate),
  ]);
  const file = fileURLToPath(new URL(name, VOICES));
  await promisify(execFile)('ffmpeg', ['-loglevel', 'error', '-i', file, ...outputs]);
}

async function atRate(name: string, rate: number): Promise<Float32Array> {
  const raw = await readFile(rawFile(name, rate));
  return new Float32Array(new Uint8Array(raw).buffer);
}

const original = new Map<string, DiscreteResult>();
for (const name of names) original.set(name, await classify(await readFile(new URL(name, VOICES))));

test('there are ten recorded voices to compare', () => assert.equal(names.length, 10));

// Ten voices take turns with eight formats at six rates, so that every rate meets every format.
for (const [turn, name] of names.entries()) {
  test(`${name} gets the same answer at every rate from 16 to 192 kHz, in 16, 24, 32 bit and float, mono and stereo`, async () => {
    const expected = original.get(name) as DiscreteResult;
    for (const [shift, sampleRate] of RATES.entries()) {
      const format = FORMATS[(turn + shift) % FORMATS.length];
      const actual = await classify(writeWav(await atRate(name, sampleRate), { ...format, sampleRate }));
      const where = `${sampleRate} Hz, ${format?.encoding}, ${format?.channels} channels`;
      assert.equal(actual.main_emotion, expected.main_emotion, where);
      for (const emotion of MODELS[DEFAULT_MODEL]) {
        const difference = Math.abs(
          Number(actual.all_predictions[emotion]) - Number(expected.all_predictions[emotion]),
        );
        assert.ok(difference <= 0.03, `${where}: ${emotion} is off by ${difference}`);
      }
    }
  });
}

for (const sampleRate of LOW_RATES) {
  test(`at ${sampleRate} Hz nine of ten voices keep their main emotion`, async () => {
    const changed: string[] = [];
    for (const name of names) {
      const { main_emotion } = await classify(writeWav(await atRate(name, sampleRate), { sampleRate }));
      const expected = original.get(name)?.main_emotion;
      if (main_emotion !== expected) changed.push(`${name}: ${expected} became ${main_emotion}`);
    }
    assert.ok(changed.length <= 1, changed.join('; '));
  });
}
