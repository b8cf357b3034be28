import assert from 'node:assert/strict';
import { test } from 'node:test';
import { channelName, renamed } from '../src/channel-names.ts';
import { type Entry, stateText } from '../src/entry.ts';
import { toSaved } from '../src/saved.ts';
import { hoursUntil } from '../src/server-time.ts';
import { shortKey } from '../src/short-key.ts';
import { actionOf } from '../src/shortcut-keys.ts';
import { step } from './support/steps.ts';

const entry: Entry = { id: 1, name: 'a.wav', path: 'a.wav', model: '4emotions', state: 'waiting' };
const result = {
  ...({ from: 'discrete', model: '4emotions', seconds: 5, channels: 1 } as const),
  ...{ steps: [step(0, 'sad')], answer: {} },
};

test('the state says what is happening, and nothing that has not begun', () => {
  assert.equal(stateText(entry), 'Waiting');
  assert.equal(stateText({ ...entry, state: 'uploading', progress: 0.409 }), 'Uploading 40 %');
  const recording = { file: new File([], 'a.wav'), url: '', peaks: [], seconds: 720 };
  assert.equal(
    stateText({ ...entry, state: 'processing', progress: 0.25, recording }),
    'Analysing 3 of 12 min',
  );
  assert.equal(stateText({ ...entry, state: 'queued', progress: 0 }), 'Waiting in the queue of the server');
});

test('a reload keeps results that only the page has, and requests of those that the server has', () => {
  const saved = toSaved([
    { ...entry, state: 'done', result },
    { ...entry, name: 'long.wav', state: 'done', requestId: 'r1', result, truth: 'sad' },
    { ...entry, name: 'running.wav', state: 'processing', requestId: 'r2' },
    { ...entry, name: 'half.wav', state: 'uploading', requestId: 'r3' },
    entry,
  ]);
  assert.deepEqual(
    saved.map(({ name, requestId, result: kept }) => [name, requestId, kept !== undefined]),
    [
      ['a.wav', undefined, true],
      ['long.wav', 'r1', false],
      ['running.wav', 'r2', false],
    ],
  );
});

test('channels have names that can be changed one by one', () => {
  const names = renamed([], 1, 'Caller');
  assert.deepEqual([channelName(names, 0), channelName(names, 1)], ['Channel 0', 'Caller']);
  assert.equal(channelName(renamed(names, 1, ' '), 1), 'Channel 1');
});

test('keys and tokens are shown by their end alone', () => {
  assert.equal(shortKey('abcdef1234'), 'key …1234');
  assert.equal(shortKey('utt_abc.xyz9'), 'token …xyz9');
});

test('the remaining time of a stored result', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  assert.equal(hoursUntil('2026-01-01T00:40:00Z', now), '40 min');
  assert.equal(hoursUntil('2026-01-01T23:40:00Z', now), '24 h');
  assert.equal(hoursUntil('2025-01-01T23:40:00Z', now), '0 min');
});

test('keys of the shortcuts, with and without Shift', () => {
  assert.equal(actionOf({ key: 'N', shiftKey: true }), 'next');
  assert.equal(actionOf({ key: 'ArrowLeft', shiftKey: true }), 'panLeft');
  assert.equal(actionOf({ key: 'ArrowLeft', shiftKey: false }), 'back');
  assert.equal(actionOf({ key: '?', shiftKey: true }), 'help');
  assert.equal(actionOf({ key: 'x', shiftKey: false }), undefined);
});
