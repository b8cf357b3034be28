import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import Value from 'typebox/value';
import { CLIENT_LIMITS, EMOTIONS, ERRORS, isErrorCode, isModelId, MODELS } from '../src/index.ts';
import { AllPredictions, AsynchResult, DiscreteResult, Problem } from '../src/schemas/index.ts';

test('each larger model starts with the emotions of the smaller one', () => {
  const [four, five, seven] = Object.values(MODELS);
  assert.deepEqual(five?.slice(0, 4), four);
  assert.deepEqual(seven?.slice(0, 5), five);
  assert.deepEqual(seven, EMOTIONS);
});

test('all_predictions accepts every emotion and nothing else', () => {
  assert.deepEqual(Object.keys(AllPredictions.properties), EMOTIONS);
  const flat = { angry: 0.25, happy: 0.25, neutral: 0.25, sad: 0.25 };
  assert.ok(Value.Check(AllPredictions, flat));
  assert.ok(!Value.Check(AllPredictions, { ...flat, bored: 0 }));
  assert.ok(!Value.Check(AllPredictions, { angry: 1 }));
});

test('a discrete result without details has exactly three fields', () => {
  const result = {
    main_emotion: 'sad',
    confidence: 0.4,
    all_predictions: { angry: 0.2, happy: 0.2, neutral: 0.2, sad: 0.4 },
  };
  assert.ok(Value.Check(DiscreteResult, result));
  assert.ok(!Value.Check(DiscreteResult, { ...result, version: 1 }));
});

test('a timestamp in an asynch result has minutes and seconds', () => {
  const result = (t: string) => ({
    request_id: '7f3a1c2e-9a40-4c0e-8f5e-0d9a3b1c2d4e',
    status: 'completed',
    emotions: [{ t, emotion: 'happy', confidence: 0.7 }],
  });
  assert.ok(Value.Check(AsynchResult, result('125:05')));
  assert.ok(!Value.Check(AsynchResult, result('0:5')));
});

test('with details, a step has times, speech and all confidences', () => {
  const all_predictions = { angry: 0.1, happy: 0.7, neutral: 0.1, sad: 0.1 };
  const element = { start: 0, end: 5, speech_seconds: 4.2, speech: true, all_predictions };
  const result = {
    request_id: '7f3a1c2e-9a40-4c0e-8f5e-0d9a3b1c2d4e',
    status: 'completed',
    model: '4emotions',
    weights: 'open',
    duration_seconds: 5,
    expires_at: '2026-01-01T00:00:00.000Z',
    emotions: [{ t: '00:00', channel: 1, emotion: 'happy', confidence: 0.7, ...element }],
    segments: [{ channel: 1, start: 0, end: 5, emotion: null, confidence: 0.3, speech_seconds: 0 }],
  };
  assert.ok(Value.Check(AsynchResult, result));
  assert.ok(!Value.Check(AsynchResult, { ...result, segments: [{ emotion: 'happy' }] }));
});

test('every error code has a 4xx or 5xx status, a title, and a valid problem', () => {
  for (const [code, { status, title }] of Object.entries(ERRORS)) {
    assert.ok(status >= 400 && status < 600 && title.length > 0, code);
    assert.ok(
      Value.Check(Problem, { type: '/', title, status, detail: '', code, request_id: 'r', figure: 1 }),
    );
  }
});

test('names inherited from Object are neither models nor error codes', () => {
  assert.ok(isModelId('4emotions') && isErrorCode('gone'));
  for (const name of ['toString', '__proto__', '', null, 4]) {
    assert.ok(!isModelId(name) && !isErrorCode(name));
  }
});

test('client defaults are within their ranges', () => {
  for (const [name, range] of Object.entries(CLIENT_LIMITS)) {
    assert.ok(range.min <= range.default && range.default <= range.max, name);
  }
});

test('the entry for clients does not import TypeBox', () => {
  const entry = new URL('../src/index.ts', import.meta.url);
  const probe = `
    import { registerHooks } from 'node:module';
    registerHooks({ resolve(name, context, next) {
      if (!name.startsWith('.') && !name.startsWith('file:')) throw new Error('imports ' + name);
      return next(name, context);
    } });
    await import(${JSON.stringify(entry.href)});`;
  execFileSync(process.execPath, ['--input-type=module', '-e', probe], { stdio: 'pipe' });
});
