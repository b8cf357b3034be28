import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MODELS } from '@undertone/contract';
import fc from 'fast-check';
import { toResult } from '../src/index.ts';

const emotions = MODELS['7emotions'];

const distribution = fc
  .array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 7, maxLength: 7 })
  .filter((weights) => weights.some((weight) => weight > 1e-6))
  .map((weights) => {
    const sum = weights.reduce((total, weight) => total + weight, 0);
    // As from the model: 32-bit floats that add up to almost 1.
    return Object.fromEntries(emotions.map((name, i) => [name, Math.fround((weights[i] ?? 0) / sum)]));
  });

test('rounded confidences add up to exactly 1, keep their order and are within one unit of the last place', () => {
  fc.assert(
    fc.property(distribution, (probabilities) => {
      const { main_emotion, confidence, all_predictions } = toResult(probabilities);
      const shown = emotions.map((name) => all_predictions[name] ?? Number.NaN);
      assert.equal(Math.round(shown.reduce((sum, value) => sum + value, 0) * 1e9), 1e9);
      assert.equal(confidence, Math.max(...shown));
      assert.equal(all_predictions[main_emotion], confidence);
      assert.equal(probabilities[main_emotion], Math.max(...Object.values(probabilities)));
      for (const [i, name] of emotions.entries()) {
        assert.ok(Math.abs((shown[i] ?? 0) - (probabilities[name] ?? 0)) <= 1.01e-4);
        assert.match(String(shown[i]), /^[01](\.\d{1,4})?$/);
      }
    }),
    { seed: 4 },
  );
});

test('a flat distribution names its first emotion and adds up to 1', () => {
  const third = 1 / 3;
  assert.deepEqual(toResult({ angry: third, happy: third, sad: third }).all_predictions, {
    angry: 0.3334,
    happy: 0.3333,
    sad: 0.3333,
  });
});
