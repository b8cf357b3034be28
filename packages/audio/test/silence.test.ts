import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { Random } from '@undertone/testing/random';
import { hasNoSpeech } from '../src/index.ts';
import { decodeAll, inPieces, open, sine } from './support/sounds.ts';

const SECONDS = 5;
const noise = (loudness: number) => {
  const random = new Random(5);
  return Float32Array.from({ length: SECONDS * 16_000 }, () => loudness * (2 * random.next() - 1));
};
const add = (a: Float32Array, b: Float32Array) => a.map((value, i) => value + (b[i] ?? 0));

async function speech(name: string): Promise<Float32Array> {
  const file = await readFile(new URL(`../../../examples/voices/${name}.wav`, import.meta.url));
  return decodeAll(await open(inPieces(file)));
}

test('silence, hum, hiss and comfort noise have no speech at any volume', () => {
  assert.ok(hasNoSpeech(new Float32Array(SECONDS * 16_000)));
  assert.ok(hasNoSpeech(new Float32Array(SECONDS * 16_000).fill(0.3)), 'a constant offset is silence');
  for (const loudness of [1e-5, 0.001, 0.1, 0.9]) {
    assert.ok(hasNoSpeech(noise(loudness)), `noise ${loudness}`);
    assert.ok(hasNoSpeech(add(noise(loudness), sine(SECONDS, 16_000, 50, loudness))), `hum ${loudness}`);
  }
});

test('speech is always detected: quiet, in noise, or a single word', async () => {
  for (const name of ['sad-1016', 'sad-1028', 'neutral-1039', 'angry-1064', 'happy-1016']) {
    const voice = await speech(name);
    assert.ok(!hasNoSpeech(voice), name);
    assert.ok(!hasNoSpeech(voice.map((value) => value / 100)), `${name}, 40 dB quieter`);
    const loudest = Math.max(...voice);
    assert.ok(!hasNoSpeech(add(noise(loudest / 10), voice)), `${name} in noise`);
    const word = new Float32Array(SECONDS * 16_000);
    word.set(voice.subarray(16_000, 24_000), 30_000);
    assert.ok(!hasNoSpeech(add(noise(0.0005), word)), `half a second of ${name}`);
  }
});
