import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DOCUMENTS, readDocument } from '@undertone/testing/documents';
import type { Command } from 'commander';
import { barOf, bars } from '../src/bars.ts';
import { progressLine } from '../src/batch.ts';
import { buildProgram } from '../src/program.ts';
import { wrap } from '../src/text.ts';
import { row } from '../src/timeline.ts';

/** Every command with its complete help. */
function helps(command: Command = buildProgram(), path = ''): [string, string][] {
  let text = '';
  command.configureOutput({ ...command.configureOutput(), writeOut: (more) => (text += more) });
  command.outputHelp();
  const name = `${path} ${command.name()}`.trim();
  return [[name, text], ...command.commands.flatMap((child) => helps(child, name))];
}

test('the help of every command fits into 80 columns', () => {
  const all = helps();
  assert.ok(all.length > 15);
  for (const [name, text] of all) {
    for (const line of text.split('\n')) assert.ok(line.length <= 80, `${name} --help: ${line}`);
  }
});

test('the help of every command with --url shows its default', () => {
  const withUrl = helps().filter(([, text]) => text.includes('--url <url>'));
  assert.ok(withUrl.length >= 8);
  for (const [name, text] of withUrl) {
    const flat = text.replace(/\s+/g, ' ');
    assert.match(flat, /--url <url>.*default: http:\/\/127\.0\.0\.1:8080, or the port in SERVICE_PORT/, name);
  }
});

test('"timeline" has one spelling in help and documents', () => {
  const documents = DOCUMENTS.map((name) => [name, readDocument(name)] as const);
  for (const [name, text] of [...helps(), ...documents]) assert.doesNotMatch(text, /time[- ]lines?\b/i, name);
});

test('bars fit a terminal of 40 columns', (t) => {
  const { columns } = process.stdout;
  t.after(() => Object.assign(process.stdout, { columns }));
  for (const width of [40, 80, 200]) {
    Object.assign(process.stdout, { columns: width });
    const lines = bars({ disgusted: 1, sad: 0 }, 2);
    const longest = Math.max(...lines.map((line) => line.length + 2));
    assert.equal(longest, Math.min(width, 61), lines[0]);
  }
  assert.equal(barOf(1, 7), '███████');
  Object.assign(process.stdout, { columns: 40 });
  const line = row({ name: '00:00 - 00:05', channel: 1, emotion: 'disgusted', confidence: 1 });
  assert.ok(line.length <= 40, line);
});

test('the progress of many files fits a terminal of 40 columns, and its figures stay', () => {
  const figures = '100 %  1000 of 1000 files, 3 failed';
  for (const columns of [40, 60, 80]) {
    const line = progressLine('Uploading and classifying', 1, figures, columns);
    assert.ok(line.length < columns, line);
    assert.ok(line.endsWith(figures), line);
  }
  assert.match(progressLine('Uploading', 0.5, '50 %', 80), /^Uploading █{10}░{10} 50 %$/);
});

test('a paragraph is broken at its words', () => {
  assert.equal(wrap('one two  three\nfour', '  ', 9), '  one two\n  three\n  four');
  assert.equal(wrap('unbreakable', '', 5), 'unbreakable');
});
