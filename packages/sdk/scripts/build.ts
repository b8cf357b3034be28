// Builds dist/, ready to publish: ESM, CommonJS and browser bundles that include the contract, self-contained
// declarations, and a package.json.
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { generateDtsBundle } from 'dts-bundle-generator';
import { type BuildOptions, build } from 'esbuild';
import { published } from '../../../scripts/published.ts';
import { wireTypes } from './wire-types.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const repository = fileURLToPath(new URL('../../..', import.meta.url));
const dist = process.argv[2] ?? `${root}dist`;

const shared: BuildOptions = {
  bundle: true,
  target: 'es2022',
  sourcemap: false,
  logLevel: 'warning',
};

await rm(dist, { recursive: true, force: true });
await mkdir(dist, { recursive: true });
const bundles = [
  { entry: 'index', platform: 'node', format: 'esm', file: 'index.js' },
  { entry: 'index', platform: 'node', format: 'cjs', file: 'index.cjs' },
  { entry: 'browser', platform: 'browser', format: 'esm', file: 'browser.js' },
  // For test runners that load pages as CommonJS, such as Jest with jsdom.
  { entry: 'browser', platform: 'browser', format: 'cjs', file: 'browser.cjs' },
] as const;
await Promise.all(
  bundles.map(({ entry, platform, format, file }) =>
    build({
      ...shared,
      entryPoints: [`${root}src/${entry}.ts`],
      platform,
      format,
      outfile: `${dist}/${file}`,
    }),
  ),
);

// The contract's types come from TypeBox, which users do not have: for the declarations they are written out.
const contract = `${dist}/contract.ts`;
const tsconfig = `${dist}/tsconfig.json`;
await writeFile(contract, wireTypes(fileURLToPath(import.meta.resolve('@undertone/contract'))));
const compilerOptions = {
  stripInternal: true,
  paths: { '@undertone/contract': [contract] },
  typeRoots: [`${repository}node_modules/@types`],
};
await writeFile(tsconfig, JSON.stringify({ extends: `${repository}tsconfig.json`, compilerOptions }));
const [types] = generateDtsBundle(
  [
    {
      filePath: `${root}src/index.ts`,
      output: { noBanner: true, exportReferencedTypes: false },
      // The declarations use no types of Node. Looking for them in all of its declarations takes half a minute.
      libraries: { allowedTypesLibraries: [], importedLibraries: [] },
    },
  ],
  { preferredConfigPath: tsconfig },
);
await Promise.all([rm(contract), rm(tsconfig)]);
await writeFile(`${dist}/index.d.ts`, types ?? '');
// CommonJS needs a .d.cts: with "type": "module", a .d.ts describes an ES module.
await writeFile(`${dist}/index.d.cts`, types ?? '');

const { name, version, description, keywords, license, type, sideEffects, engines } = JSON.parse(
  await readFile(`${root}package.json`, 'utf8'),
);
const manifest = {
  name,
  version,
  description,
  keywords,
  license,
  ...published('packages/sdk'),
  type,
  sideEffects,
  engines,
  main: './index.cjs',
  module: './index.js',
  types: './index.d.ts',
  exports: {
    '.': {
      browser: {
        import: { types: './index.d.ts', default: './browser.js' },
        require: { types: './index.d.cts', default: './browser.cjs' },
      },
      import: { types: './index.d.ts', default: './index.js' },
      require: { types: './index.d.cts', default: './index.cjs' },
    },
    './package.json': './package.json',
  },
  files: ['*.js', '*.cjs', '*.d.ts', '*.d.cts'],
};
await writeFile(`${dist}/package.json`, `${JSON.stringify(manifest, null, 2)}\n`);
await copyFile(`${root}README.md`, `${dist}/README.md`);
await copyFile(`${repository}LICENSE`, `${dist}/LICENSE`);
