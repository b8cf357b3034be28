import assert from 'node:assert/strict';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { score } from '@undertone/contract';
import { silentWav } from '@undertone/testing/wav';
import { temporaryFolder, undertone, VOICES } from './support/undertone.ts';

const NAMES = ['angry-1028', 'happy-1064', 'sad-1016', 'sad-1028'];

test('compare measures every set of weights on folders named by emotion, and writes a plot', async (t) => {
  const folder = await temporaryFolder(t);
  for (const name of NAMES) {
    const emotion = name.split('-')[0] as string;
    await mkdir(join(folder, emotion), { recursive: true });
    await copyFile(join(VOICES, `${name}.wav`), join(folder, emotion, `${name}.wav`));
  }
  const picture = join(folder, 'compared.svg');
  const { code, stdout, stderr } = await undertone(['models', 'compare', folder, '--picture', picture]);
  assert.deepEqual([code, stderr], [0, '']);
  for (const weights of ['research', 'open']) {
    assert.match(stdout, new RegExp(`${weights} 4emotions +4 +\\d+\\.\\d %`));
    assert.ok(stdout.includes(`${weights} 4emotions: each emotion (row), per cent classified as`));
  }
  const drawn = await readFile(picture, 'utf8');
  assert.match(drawn, /^<svg .*research, 4emotions: UAR .*open, 4emotions: UAR .*<\/svg>\n$/s);
});

test('compare reads a CSV, names unreadable files, and measures the rest', async (t) => {
  const folder = await temporaryFolder(t);
  await writeFile(join(folder, 'empty.wav'), silentWav(0.5));
  await writeFile(join(folder, 'not-sound.wav'), 'hello');
  const rows = [
    'speaker,path,emotion',
    `a,"${join(VOICES, 'angry-1028.wav')}",anger`,
    'b,empty.wav,calm',
    'b,not-sound.wav,joy',
  ];
  await writeFile(join(folder, 'labels.csv'), `${rows.join('\r\n')}\n`);
  const { code, stdout, stderr } = await undertone([
    'models',
    'compare',
    join(folder, 'labels.csv'),
    '--json',
  ]);
  assert.equal(code, 1);
  assert.match(stderr, /not-sound\.wav: /);
  const { research } = JSON.parse(stdout);
  assert.equal(research['4emotions'].recordings, 2);
  assert.equal(research['4emotions'].emotions.length, 4);
});

test('compare explains how to label recordings, and names an unknown label', async (t) => {
  const folder = await temporaryFolder(t);
  const nothing = await undertone(['models', 'compare', folder]);
  assert.equal(nothing.code, 1);
  assert.match(nothing.stderr, /folders named by emotion/);
  await writeFile(join(folder, 'labels.csv'), 'path,emotion\n1.wav,bored\n');
  const unknown = await undertone(['models', 'compare', join(folder, 'labels.csv')]);
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /labels\.csv, row 2: "bored" is not a known emotion/);
});

test('UAR weights every emotion equally, and calibration compares confidence with accuracy', () => {
  const probabilities = (angry: number) => ({ angry, sad: 1 - angry });
  const predictions = [
    { truth: 'angry', probabilities: probabilities(0.85) },
    { truth: 'angry', probabilities: probabilities(0.85) },
    { truth: 'angry', probabilities: probabilities(0.85) },
    { truth: 'sad', probabilities: probabilities(0.85) },
    { truth: 'happy', probabilities: probabilities(0.85) },
  ] as const;
  const { recordings, uar, accuracy, ece, confusion, overconfidence } = score(['angry', 'sad'], predictions);
  assert.deepEqual({ recordings, uar, accuracy }, { recordings: 4, uar: 0.5, accuracy: 0.75 });
  assert.deepEqual(confusion, [
    [3, 0],
    [1, 0],
  ]);
  assert.ok(Math.abs(ece - 0.1) < 1e-9 && Math.abs(overconfidence - 0.1) < 1e-9);
});
