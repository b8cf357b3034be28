import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { ROOT, TEST_MODELS } from '@undertone/testing/paths';
import { tryInstalled } from '@undertone/testing/try-installed';
import { publint } from 'publint';
import ts from 'typescript';

const run = promisify(execFile);

interface Manifest {
  readonly bin: { readonly undertone: string };
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly bundleDependencies: readonly string[];
}

describe('the npm package `undertone`', () => {
  let base: string;
  let folder: string;
  let home: string;
  let manifest: Manifest;
  let shipped: string[];
  before(async () => {
    base = await mkdtemp(join(tmpdir(), 'undertone-packed-'));
    folder = join(base, 'user');
    home = join(folder, 'node_modules/undertone');
    const dist = join(base, 'dist');
    const models = join(dist, 'node_modules/@undertone/classifier/models');
    await run(process.execPath, [join(ROOT, 'packages/cli/scripts/build.ts'), dist]);
    shipped = await readdir(models);
    // Compressing the shipped weights takes long. `make acceptance` does it.
    await cp(TEST_MODELS, models, { recursive: true });
    const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', base], { cwd: dist });
    await mkdir(home, { recursive: true });
    await run('tar', ['-xzf', join(base, stdout.trim()), '--strip-components=1', '-C', home]);
    // What npm install does next, with the packages that are here. `make acceptance` downloads them instead.
    manifest = JSON.parse(await readFile(join(home, 'package.json'), 'utf8'));
    for (const name of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })) {
      if (manifest.bundleDependencies.includes(name)) continue;
      const link = join(folder, 'node_modules', name);
      await mkdir(dirname(link), { recursive: true });
      await symlink(join(ROOT, 'node_modules', name), link);
    }
    await mkdir(join(folder, 'node_modules/.bin'));
    await symlink(join(home, manifest.bin.undertone), join(folder, 'node_modules/.bin/undertone'));
  });
  after(() => rm(base, { recursive: true, force: true }));

  test('serves, classifies and shows its page when it is unpacked beside its dependencies, outside the clone', async () => {
    const { version, classified, answer, page } = await tryInstalled(folder);
    assert.equal(version, JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')).version);
    assert.equal(answer.main_emotion, 'angry');
    assert.equal(JSON.parse(classified).main_emotion, 'angry');
    assert.match(page, /<title>Undertone/);
  });

  test('has compiled code only, both weights, and the packages that it imports', async () => {
    const files = await readdir(home, { recursive: true });
    assert.deepEqual(
      files.filter((file) => /\.ts$|\.test\.|\btest\//.test(file)),
      [],
    );
    assert.deepEqual(shipped.sort(), ['catalog.json', 'open.onnx', 'research.onnx']);
    for (const file of ['models/open.onnx', 'models/research.onnx', 'src/thread.js'])
      assert(files.includes(join('node_modules/@undertone/classifier', file)), file);
    for (const file of ['LICENSE', 'NOTICE', 'README.md', 'CHANGELOG.md']) assert(files.includes(file), file);
    const declared = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies });
    for (const file of files.filter((name) => /(^|\/)(src|bin)\/.*\.js$/.test(name))) {
      const source = await readFile(join(home, file), 'utf8');
      for (const { fileName } of ts.preProcessFile(source, true, true).importedFiles) {
        if (fileName.startsWith('.') || isBuiltin(fileName)) continue;
        const [name = ''] = /^(@[^/]+\/)?[^/]+/.exec(fileName) ?? [];
        assert(declared.includes(name), `${file} imports ${fileName}`);
      }
    }
  });

  test('publint finds nothing to improve', async () => {
    const { messages } = await publint({ pkgDir: home, pack: false, strict: true });
    assert.deepEqual(messages, []);
  });
});
