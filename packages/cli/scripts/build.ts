// Builds dist/, ready to publish as `undertone`: the command line, and in its node_modules the packages that it consists of, with
// the page and the weights. All of it is JavaScript, because Node runs no TypeScript inside node_modules.
import { copyFile, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { published } from '../../../scripts/published.ts';

const repository = fileURLToPath(new URL('../../..', import.meta.url));
const dist = process.argv[2] ?? join(repository, 'packages/cli/dist');

const BUNDLED = {
  audio: ['src'],
  classifier: ['src', 'models'],
  contract: ['src'],
  playground: ['dist'],
  sdk: ['src'],
  server: ['src'],
};
/** Needed only to build. */
const NOT_PUBLISHED = /\.(md|wat)$/;

const compilerOptions: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.ESNext,
  verbatimModuleSyntax: true,
  rewriteRelativeImportExtensions: true,
};

await rm(dist, { recursive: true, force: true });
const cli = await manifestOf('cli');
const dependencies: Record<string, string> = { ...cli.dependencies };
const optionalDependencies: Record<string, string> = {};
for (const folder of ['bin', 'src']) await copy(join(repository, 'packages/cli', folder), join(dist, folder));
for (const [name, folders] of Object.entries(BUNDLED)) {
  const manifest = await manifestOf(name);
  const target = join(dist, 'node_modules', manifest.name);
  for (const folder of folders)
    await copy(join(repository, 'packages', name, folder), join(target, folder), name !== 'playground');
  const { version, license, type, sideEffects } = manifest;
  const exports = JSON.parse(JSON.stringify(manifest.exports).replaceAll('.ts"', '.js"'));
  await writeJson(join(target, 'package.json'), {
    name: manifest.name,
    version,
    license,
    type,
    sideEffects,
    exports,
  });
  // The page is built: what it was built from is inside.
  if (name !== 'playground') Object.assign(dependencies, manifest.dependencies);
  Object.assign(optionalDependencies, manifest.optionalDependencies);
  // Declared with its version, as npm wants bundled packages to be.
  dependencies[manifest.name] = version;
}
const bundled = Object.keys(dependencies).filter((name) => name.startsWith('@undertone/'));
for (const name of bundled) dependencies[name] = cli.version;

await writeJson(join(dist, 'package.json'), {
  name: 'undertone',
  version: cli.version,
  description: cli.description,
  keywords: cli.keywords,
  // The code is under the Apache License 2.0; the weights and the example voices have licences of their own.
  license: 'SEE LICENSE IN NOTICE',
  ...published('packages/cli'),
  type: cli.type,
  engines: cli.engines,
  bin: cli.bin,
  exports: { './package.json': './package.json' },
  files: ['bin', 'src', 'NOTICE', 'CHANGELOG.md'],
  dependencies: sorted(dependencies),
  optionalDependencies: sorted(optionalDependencies),
  bundleDependencies: bundled.sort(),
});
await copyFile(join(repository, 'packages/cli/README.md'), join(dist, 'README.md'));
for (const name of ['LICENSE', 'NOTICE', 'CHANGELOG.md'])
  await copyFile(join(repository, name), join(dist, name));

async function manifestOf(name: string) {
  return JSON.parse(await readFile(join(repository, 'packages', name, 'package.json'), 'utf8'));
}

/** Compiles TypeScript, and the imports of TypeScript in our JavaScript; copies the rest. */
async function copy(from: string, to: string, compile = true): Promise<void> {
  for (const entry of await readdir(from, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || (compile && NOT_PUBLISHED.test(entry.name))) continue;
    const source = join(entry.parentPath, entry.name);
    const target = join(to, relative(from, source));
    await mkdir(dirname(target), { recursive: true });
    if (!compile || !/\.[jt]s$/.test(entry.name)) {
      await copyFile(source, target);
      continue;
    }
    const { outputText } = ts.transpileModule(await readFile(source, 'utf8'), { compilerOptions });
    const { mode } = await stat(source);
    await writeFile(target.replace(/\.ts$/, '.js'), outputText, { mode });
  }
}

function sorted(entries: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(entries).sort(([a], [b]) => (a < b ? -1 : 1)));
}

async function writeJson(file: string, content: unknown): Promise<void> {
  await writeFile(file, `${JSON.stringify(content, null, 2)}\n`);
}
