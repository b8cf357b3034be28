// Makes dist/ a folder that can be published as it is: ESM, CommonJS and browser builds with the contract
// bundled in, declarations that stand on their own, and a package.json that names them.
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { generateDtsBundle } from 'dts-bundle-generator';
import { type BuildOptions, build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = process.argv[2] ?? `${root}dist`;

const shared: BuildOptions = {
  bundle: true,
  target: 'es2022',
  sourcemap: false,
  logLevel: 'warning',
};

await rm(dist, { recursive: true, force: true });
await mkdir(dist, { recursive: true });
await Promise.all([
  build({
    ...shared,
    entryPoints: [`${root}src/index.ts`],
    platform: 'node',
    format: 'esm',
    outfile: `${dist}/index.js`,
  }),
  build({
    ...shared,
    entryPoints: [`${root}src/index.ts`],
    platform: 'node',
    format: 'cjs',
    outfile: `${dist}/index.cjs`,
  }),
  build({
    ...shared,
    entryPoints: [`${root}src/browser.ts`],
    platform: 'browser',
    format: 'esm',
    outfile: `${dist}/browser.js`,
  }),
]);

const [types] = generateDtsBundle(
  [{ filePath: `${root}src/index.ts`, output: { noBanner: true, exportReferencedTypes: false } }],
  { preferredConfigPath: `${root}tsconfig.build.json` },
);
await writeFile(`${dist}/index.d.ts`, types ?? '');
// The same declarations once more: under CommonJS a .d.ts next to "type": "module" would mean ESM.
await writeFile(`${dist}/index.d.cts`, types ?? '');

const { name, version, description, license, type, sideEffects, engines } = JSON.parse(
  await readFile(`${root}package.json`, 'utf8'),
);
const manifest = {
  name,
  version,
  description,
  license,
  type,
  sideEffects,
  engines,
  main: './index.cjs',
  module: './index.js',
  types: './index.d.ts',
  exports: {
    '.': {
      browser: { types: './index.d.ts', default: './browser.js' },
      import: { types: './index.d.ts', default: './index.js' },
      require: { types: './index.d.cts', default: './index.cjs' },
    },
    './package.json': './package.json',
  },
  files: ['*.js', '*.cjs', '*.d.ts', '*.d.cts'],
};
await writeFile(`${dist}/package.json`, `${JSON.stringify(manifest, null, 2)}\n`);
await copyFile(`${root}README.md`, `${dist}/README.md`);
await copyFile(`${root}../../LICENSE`, `${dist}/LICENSE`);
