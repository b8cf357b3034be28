import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { ROOT } from '@undertone/testing/paths';
import { placesOf, readVersion, WORKSPACE } from '../../../scripts/versions.ts';

const run = promisify(execFile);
const current = readVersion(ROOT, WORKSPACE);
/** Larger than every version so far. */
const NEXT = '1000.2.3';

test('every file that names the version names the same one', () => {
  const found = placesOf(ROOT).map((place) => [place[0], readVersion(ROOT, place)]);
  assert.deepEqual(
    found,
    placesOf(ROOT).map(([file]) => [file, current]),
  );
});

test('make release sets the version everywhere, dates the changelog, and says what to do next', async (t) => {
  const copy = await copyOfText(t);
  const { stdout } = await release(copy, NEXT);
  for (const place of placesOf(copy)) assert.equal(readVersion(copy, place), NEXT, place[0]);

  // Lines of the lock file and of the changelog may name this version for other reasons.
  const left = await run('git', ['grep', '--no-index', '--line-number', '--fixed-strings', current, '.'], {
    cwd: copy,
  }).catch(() => ({ stdout: '' }));
  const version = new RegExp(`(?<![\\d.])${current.replaceAll('.', '\\.')}(?![\\d.])`);
  const forgotten = left.stdout
    .split('\n')
    .filter((line) => version.test(line) && !/^(package-lock\.json|CHANGELOG\.md):/.test(line));
  assert.deepEqual(forgotten, []);

  const [before, after] = await Promise.all(
    [ROOT, copy].map((root) => readFile(join(root, 'CHANGELOG.md'), 'utf8')),
  );
  const today = new Date().toISOString().slice(0, 10);
  assert.equal(after, before?.replace(/^## Unreleased.*$/m, `## Unreleased\n\n## ${NEXT} (${today})`));
  for (const command of [
    `git tag --annotate v${NEXT}`,
    `npm publish dist-packages/undertone-${NEXT}.tgz`,
    `npm publish dist-packages/undertone-sdk-${NEXT}.tgz`,
    `twine upload dist-packages/undertone_client-${NEXT}*`,
  ])
    assert(stdout.includes(command), command);

  await assert.rejects(release(copy, '1000.2.4'), /nothing under "## Unreleased"/);
  await assert.rejects(release(copy, '1000.2.3'), /not newer than 1000\.2\.3/);
  await assert.rejects(release(copy, '999.20.30'), /not newer/);
  for (const wrong of ['', 'v1001.0.0', '1001.0', '1001.0.0-rc.1'])
    await assert.rejects(release(copy, wrong), /must look like 1\.2\.3/);
});

test('the published metadata names one repository', async () => {
  const { homepage, bugs, repository } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  assert.deepEqual([repository.url, bugs], [`git+${homepage}.git`, `${homepage}/issues`]);
  const pyproject = await readFile(join(ROOT, 'clients/python/pyproject.toml'), 'utf8');
  for (const line of [
    `Homepage = "${homepage}"`,
    `Repository = "${homepage}.git"`,
    `Issues = "${homepage}/issues"`,
    `Changelog = "${homepage}/blob/main/CHANGELOG.md"`,
  ])
    assert(pyproject.includes(line), line);
  const image = await readFile(join(ROOT, 'deploy/Dockerfile'), 'utf8');
  assert(image.includes(`org.opencontainers.image.source="${homepage}"`));
});

for (const [platform, node, message, code] of [
  ['darwin', '22.18.0', /runs with this machine's v22\.18\.0\.$/, 0],
  ['win32', '24.1.0', /runs with this machine's v24\.1\.0\.$/, 0],
  ['darwin', '22.17.9', /v22\.17\.9, which is too old: install Node 22\.18 or newer/, 1],
] as const) {
  test(`on ${platform} with Node ${node}, the installation says which Node runs the project`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'undertone-link-'));
    t.after(() => rm(folder, { recursive: true, force: true }));
    const pretend = `
      Object.defineProperty(process, 'platform', { value: '${platform}' });
      Object.defineProperty(process, 'version', { value: 'v${node}' });
      Object.defineProperty(process, 'versions', { value: { node: '${node}' } });`;
    const args = [
      '--import',
      `data:text/javascript,${encodeURIComponent(pretend)}`,
      join(ROOT, 'scripts/link-node.js'),
    ];
    const done = await run(process.execPath, args, { cwd: folder }).then(
      ({ stdout }) => ({ stdout, code: 0 }),
      ({ stdout, code }) => ({ stdout, code }),
    );
    assert.match(done.stdout.trim(), message);
    assert.equal(done.code, code);
  });
}

function release(folder: string, version: string) {
  return run('make', ['release', `VERSION=${version}`], { cwd: folder });
}

/** The tracked files of this tree as they are now, without recordings, weights and pictures. */
async function copyOfText(t: TestContext): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'undertone-release-'));
  t.after(() => rm(copy, { recursive: true, force: true }));
  const { stdout } = await run('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
  });
  const files = stdout.split('\n').filter((file) => file !== '' && !/\.(onnx|wav|png|wasm|ogg)$/.test(file));
  for (const file of files) {
    await mkdir(dirname(join(copy, file)), { recursive: true });
    // A tracked file may have been deleted.
    await copyFile(join(ROOT, file), join(copy, file)).catch((error) => {
      if (error.code !== 'ENOENT') throw error;
    });
  }
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}
