import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { ROOT, temporaryFolder } from './support/undertone.ts';

const run = promisify(execFile);

/** A PATH folder with only these programs, as on a bare machine. */
async function onlyPrograms(folder: string, names: readonly string[]): Promise<string> {
  for (const name of names) {
    const path = ['/bin', '/usr/bin'].map((place) => join(place, name)).find(existsSync);
    if (path !== undefined) await symlink(path, join(folder, name));
  }
  return folder;
}

test('without apt-get, the set-up names each missing package with its reason and stops', async (t) => {
  const PATH = await onlyPrograms(await temporaryFolder(t), ['bash', 'grep', 'id', 'env']);
  const result = run(join(PATH, 'bash'), ['scripts/test-deps.sh'], {
    cwd: ROOT,
    env: { PATH, PYTHON: 'no-python' },
  });
  const error = await result.then(
    () => assert.fail('it should stop'),
    (reason: { code: number; stdout: string; stderr: string }) => reason,
  );
  assert.equal(error.code, 1);
  assert.match(error.stdout, /^missing: curl \(.+\)$/m);
  assert.match(error.stdout, /^missing: python3-torch \(.+\)$/m);
  assert.match(error.stderr, /no apt-get.*curl ffmpeg .*python3-torch/);
});

for (const [state, prepare] of [
  ['missing', async () => undefined],
  ['broken', (bin: string) => symlink('../node-linux-other/bin/node', join(bin, 'node'))],
] as const) {
  test(`a ${state} link to the project's Node is repaired after an install`, async (t) => {
    const folder = await temporaryFolder(t);
    const home = join(folder, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin');
    const bin = join(folder, 'node_modules/.bin');
    for (const place of [home, bin]) await mkdir(place, { recursive: true });
    await writeFile(join(home, 'node'), '#!/bin/sh\necho the right one\n');
    await chmod(join(home, 'node'), 0o755);
    await prepare(bin);
    await run(process.execPath, [join(ROOT, 'scripts/link-node.js')], { cwd: folder });
    const { stdout } = await run(join(bin, 'node'));
    assert.equal(stdout, 'the right one\n');
  });
}
