import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { builtinModules } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { ROOT } from '@undertone/testing/paths';
import { tryInstalled } from '@undertone/testing/try-installed';
import { publint } from 'publint';
import ts from 'typescript';

const run = promisify(execFile);

describe('the npm package `undertone`', () => {
  let base: string;
  let folder: string;
  let home: string;
  before(async () => {
    base = await mkdtemp(join(tmpdir(), 'undertone-packed-'));
    folder = join(base, 'user');
    home = join(folder, 'node_modules/undertone');
    await mkdir(folder);
    await writeFile(join(folder, 'package.json'), '{ "name": "user", "private": true }');
    await run(process.execPath, [join(ROOT, 'packages/cli/scripts/build.ts'), join(base, 'dist')]);
    const packed = await run('npm', ['pack', '--silent', '--pack-destination', base], {
      cwd: join(base, 'dist'),
    });
    await run(
      'npm',
      ['install', '--silent', '--prefer-offline', '--ignore-scripts', join(base, packed.stdout.trim())],
      {
        cwd: folder,
      },
    );
  });
  after(() => rm(base, { recursive: true, force: true }));

  test('serves, classifies and shows its page after npm install in an empty folder', async () => {
    const { version, classified, answer, page } = await tryInstalled(folder);
    assert.equal(version, JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')).version);
    assert.equal(answer.main_emotion, 'angry');
    assert.equal(JSON.parse(classified).main_emotion, 'angry');
    assert.match(page, /<title>Undertone/);
  });

  test('has compiled code only, both weights, and the packages that it imports', async () => {
    const { dependencies, optionalDependencies } = JSON.parse(
      await readFile(join(home, 'package.json'), 'utf8'),
    );
    const files = await readdir(home, { recursive: true });
    assert.deepEqual(
      files.filter((file) => /\.ts$|\.test\.|\btest\//.test(file)),
      [],
    );
    for (const file of ['models/open.onnx', 'models/research.onnx', 'src/thread.js'])
      assert(files.includes(join('node_modules/@undertone/classifier', file)), file);
    for (const file of ['LICENSE', 'NOTICE', 'README.md', 'CHANGELOG.md']) assert(files.includes(file), file);
    const declared = new Set([
      ...Object.keys({ ...dependencies, ...optionalDependencies }),
      ...builtinModules,
    ]);
    for (const file of files.filter((name) => /(^|\/)(src|bin)\/.*\.js$/.test(name))) {
      const source = await readFile(join(home, file), 'utf8');
      for (const { fileName } of ts.preProcessFile(source, true, true).importedFiles) {
        const [, name = fileName] = /^(?:node:)?((?:@[^/]+\/)?[^/]+)/.exec(fileName) ?? [];
        if (!fileName.startsWith('.')) assert(declared.has(name), `${file} imports ${fileName}`);
      }
    }
  });

  test('publint finds nothing to improve', async () => {
    const { messages } = await publint({ pkgDir: home, pack: false, strict: true });
    assert.deepEqual(messages, []);
  });
});
