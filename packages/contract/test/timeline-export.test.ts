import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type AsynchResult,
  csvLine,
  labelOf,
  type TimedStep,
  timedSteps,
  toCsv,
  toSrt,
} from '../src/index.ts';

const all_predictions = { angry: 0.93, happy: 0.03, neutral: 0.02, sad: 0.02 };
const STEPS: TimedStep[] = [
  { start: 0, end: 5, emotion: 'angry', confidence: 0.93, channel: 0, speech_seconds: 4.2, all_predictions },
  { start: 0, end: 5, emotion: 'sad', confidence: 0.3, channel: 1, speech_seconds: 0.4, speech: false },
  { start: 3725, end: 3727.0004, emotion: 'happy', confidence: 0.3, channel: 1 },
];

test('CSV has a row per step, channels from 0, and no emotion without speech', () => {
  assert.equal(
    toCsv(STEPS),
    't,seconds,emotion,confidence,end,channel,speech_seconds,speech,angry,happy,neutral,sad\n' +
      '00:00,0,angry,0.93,5,0,4.2,true,0.93,0.03,0.02,0.02\n' +
      '00:00,0,no speech,0.3,5,1,0.4,false,,,,\n' +
      '62:05,3725,happy,0.3,3727,1,,,,,,\n',
  );
});

test('CSV quotes commas, quotes and line breaks', () => {
  assert.equal(csvLine(['a, "b"', 'c\nd', undefined, 0]), '"a, ""b""","c\nd",,0\n');
});

test('SRT has a cue per step, with the channel, and marks unsure answers', () => {
  assert.equal(
    toSrt(STEPS),
    '1\n00:00:00,000 --> 00:00:05,000\nchannel 0: angry 93 %\n\n' +
      '2\n00:00:00,000 --> 00:00:05,000\nchannel 1: no speech\n\n' +
      '3\n01:02:05,000 --> 01:02:07,000\nchannel 1: happy 30 % (unsure)\n',
  );
  const [first] = STEPS.map(({ channel, ...mixed }) => mixed);
  assert.match(toSrt(first ? [first] : []), /\nangry 93 %\n$/);
});

test('SRT rounds to milliseconds without overflowing a second', () => {
  const step = { start: 0.9996, end: 59.9999, emotion: 'sad', confidence: 1 } as const;
  assert.match(toSrt([step]), /00:00:01,000 --> 00:01:00,000/);
});

test('steps without details take their length from the interval and end with the recording', () => {
  const element = { emotion: 'sad', confidence: 0.5 } as const;
  const result: AsynchResult = {
    request_id: 'r',
    status: 'completed',
    emotions: ['00:00', '00:10', '00:20'].map((t) => ({ t, ...element })),
  };
  const places = (steps: TimedStep[]) => steps.map(({ start, end }) => [start, end]);
  assert.deepEqual(places(timedSteps(result)), [
    [0, 10],
    [10, 20],
    [20, 30],
  ]);
  assert.deepEqual(places(timedSteps({ ...result, duration_seconds: 24 })).at(-1), [20, 24]);
  const detailed = { t: '00:00', ...element, start: 0, end: 7.5 };
  assert.deepEqual(places(timedSteps({ ...result, emotions: [detailed] })), [[0, 7.5]]);
});

test('an answer without speech or with low confidence has no emotion as its label', () => {
  assert.deepEqual(STEPS.map(labelOf), ['angry', 'no speech', 'unsure']);
  assert.equal(labelOf({ emotion: 'sad', confidence: 0.38, speech_seconds: 0.5 }), 'sad');
  assert.equal(labelOf({ emotion: 'sad', confidence: 0.9, speech_seconds: 0.49 }), 'no speech');
});
