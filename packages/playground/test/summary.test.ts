import assert from 'node:assert/strict';
import { test } from 'node:test';
import { averagesOf, headline, mainLabel, meanConfidence, sharesOf, summary } from '../src/summary.ts';
import { step } from './support/steps.ts';

const silence = (at: number) => step(at, 'angry', 0.9, { speech_seconds: 0 });

test('the headline counts what the legend counts: unsure and silent steps are no emotion', () => {
  const steps = [
    step(0, 'angry'),
    step(5, 'angry', 0.3),
    silence(10),
    step(15, 'happy'),
    step(20, 'happy'),
    step(25, 'sad'),
  ];
  const shares = sharesOf(steps);
  assert.deepEqual(
    shares.map(([label, share]) => `${label} ${Math.round(share * 100)}`),
    ['happy 33', 'angry 17', 'unsure 17', 'no speech 17', 'sad 17'],
  );
  assert.equal(headline(steps), 'mixed: happy 33 %, angry 17 %, unsure 17 %');
});

test('"mostly" begins at half of the time', () => {
  const half = [step(0, 'sad'), step(5, 'sad'), step(10, 'happy'), step(15, 'angry')];
  assert.equal(headline(half), 'mostly sad, 50 % of the time');
  assert.match(headline([...half, step(20, 'angry')]), /^mixed: /);
  assert.equal(headline([step(0, 'sad'), step(5, 'sad')]), 'sad all the time');
  assert.equal(headline([silence(0), silence(5)]), 'no speech all the time');
});

test('a single answer has its confidence; an unsure one says so, and silence has none', () => {
  assert.equal(headline([step(0, 'sad', 0.8)]), 'sad, 80.0 %');
  assert.equal(headline([step(0, 'sad', 0.3)]), 'unsure, perhaps sad, 30.0 %');
  assert.equal(headline([silence(0)]), 'no speech');
  assert.equal(headline([]), 'no result');
});

test('channels have headlines of their own', () => {
  const steps = [step(0, 'sad', 0.8, { channel: 0 }), step(0, 'happy', 0.7, { channel: 1 })];
  assert.equal(
    summary(steps, (channel) => ['Agent', 'Caller'][channel] ?? ''),
    'Agent: sad, 80.0 %; Caller: happy, 70.0 %',
  );
});

test('averages and confidence leave silence out, and weigh by length', () => {
  const all = (angry: number) => ({ all_predictions: { angry, happy: 1 - angry, neutral: 0, sad: 0 } });
  const steps = [
    step(0, 'angry', 0.9, all(0.9)),
    { ...step(5, 'happy', 0.6, all(0.3)), end: 15 },
    { ...silence(15), ...all(1) },
  ];
  assert.equal(averagesOf(steps, '4emotions').angry?.toFixed(3), '0.500');
  assert.equal(meanConfidence(steps)?.toFixed(3), '0.700');
  assert.equal(meanConfidence([silence(0)]), undefined);
  assert.deepEqual(averagesOf([silence(0)], '4emotions'), {});
});

test('the main label prefers an emotion to longer silence', () => {
  assert.equal(mainLabel([silence(0), silence(5), step(10, 'sad')]), 'sad');
  assert.equal(mainLabel([silence(0)]), 'no speech');
});
