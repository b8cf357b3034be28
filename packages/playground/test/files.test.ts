// Many files: their labels, rows, order and exports.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Emotion } from '@undertone/contract';
import type { Entry } from '../src/entry.ts';
import { allToCsv, allToJson, predictionsOf, rowOf, sorted } from '../src/file-rows.ts';
import { labelsOf, sortFiles, truthOf } from '../src/labelled-files.ts';
import { step } from './support/steps.ts';

const file = (path: string) => ({ file: new File([], path.split('/').at(-1) ?? ''), path });

function entry(id: number, path: string, emotion: Emotion, confidence: number, truth?: Emotion): Entry {
  const all_predictions = { angry: 0, happy: 0, neutral: 0, sad: 0, [emotion]: confidence };
  const steps = [step(0, emotion, confidence, { all_predictions })];
  const result = {
    ...({ from: 'discrete', model: '4emotions', seconds: 5, channels: 1, steps } as const),
    answer: { main_emotion: emotion },
  };
  const base = { id, name: path, path, model: '4emotions', state: 'done', result } as const;
  return truth ? { ...base, truth } : base;
}

test('folders named by emotion label their files; other files of a folder are left out', () => {
  const { recordings, tables } = sortFiles(
    ['set/anger/1.wav', 'set/sad/.hidden.wav', 'set/sad/notes.txt', 'set/2.mp3', 'odd.bin', 'labels.csv'].map(
      file,
    ),
  );
  assert.deepEqual(
    recordings.map(({ path, truth }) => [path, truth]),
    [
      ['set/anger/1.wav', 'angry'],
      ['set/2.mp3', undefined],
      ['odd.bin', undefined],
    ],
  );
  assert.equal(tables.length, 1);
});

test('a CSV labels files by the end of their path', () => {
  const labels = labelsOf('path,emotion\n./a/1.wav,joy\n"x/y, z/2.wav",sad\n3.wav,anger\n', 'labels.csv');
  assert.equal(truthOf('set/a/1.wav', labels), 'happy');
  assert.equal(truthOf('2.wav', labels), 'sad');
  assert.equal(truthOf('b/3.wav', labels), 'angry');
  assert.equal(truthOf('b/1.wav', labels), undefined);
  assert.throws(() => labelsOf('file,label\n', 'l.csv'), /l\.csv needs the columns path and emotion/);
  assert.throws(() => labelsOf('path,emotion\na,bored\n', 'l.csv'), /row 2: "bored" is not a known emotion/);
});

test('rows sort by every column, and those without a value come last', () => {
  const waiting: Entry = { id: 9, name: '0', path: '0', model: '4emotions', state: 'waiting' };
  const rows = [entry(1, '10.wav', 'sad', 0.9), waiting, entry(2, '2.wav', 'angry', 0.95)].map(rowOf);
  const ids = (column: 'name' | 'emotion' | 'confidence', descending = false) =>
    sorted(rows, { column, descending }).map((row) => row.entry.id);
  assert.deepEqual(ids('name'), [9, 2, 1]);
  assert.deepEqual(ids('emotion'), [2, 1, 9]);
  assert.deepEqual(ids('confidence', true), [2, 1, 9]);
  assert.equal(rowOf(waiting), rowOf(waiting), 'an unchanged entry has the same row');
});

test('all results are saved as CSV and JSON', () => {
  const rows = [entry(1, 'a,b.wav', 'sad', 0.9, 'sad'), entry(2, 'c.wav', 'sad', 0.3)].map(rowOf);
  assert.equal(
    allToCsv(rows),
    'path,label,seconds,emotion,confidence,share sad,share unsure\n"a,b.wav",sad,5,sad,0.9,1,0\nc.wav,,5,unsure,0.3,0,1\n',
  );
  assert.deepEqual(JSON.parse(allToJson(rows))[0], {
    path: 'a,b.wav',
    label: 'sad',
    model: '4emotions',
    answer: { main_emotion: 'sad' },
  });
});

test('labelled results of a model become predictions for its confusion matrix', () => {
  const rows = [entry(1, 'a', 'sad', 0.9, 'angry'), entry(2, 'b', 'sad', 0.3)].map(rowOf);
  const [only, ...more] = predictionsOf(rows, '4emotions');
  assert.deepEqual([only?.truth, only?.probabilities['sad'], more.length], ['angry', 0.9, 0]);
  assert.deepEqual(predictionsOf(rows, '7emotions'), []);
});
