import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createContext, runInContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { DISCRETE_ANSWER, type FlakyServer, TIMELINE } from '@undertone/testing/flaky-server';
import { build } from 'esbuild';
import { publint } from 'publint';
import { flakyServer, scrambled, temporaryFile } from './support/clients.ts';
import { type Installed, installPacked, run, runtimes, typeCheck, typeRoots } from './support/packed.ts';

const RECORDING = scrambled(300_000);

const USE = `
  (async () => {
    const client = new EmotionClient({ partSize: 1024 * 1024 });
    client.validateConfig();
    const result = await client.asynch.classify(process.argv[2]);
    const discrete = await client.discrete.emotions(process.argv[2]);
    const error = await client.asynch.upload('/no/such.wav').catch((thrown) => thrown);
    const kinds = [error instanceof MissingFileError, error instanceof UndertoneError, error.name];
    console.log(JSON.stringify({ result, discrete, kinds }));
  })();
`;

const PROGRAMS = {
  'ESM.mjs': `import { EmotionClient, MissingFileError, UndertoneError } from '@undertone/sdk'; ${USE}`,
  'CommonJS.cjs': `const { EmotionClient, MissingFileError, UndertoneError } = require('@undertone/sdk'); ${USE}`,
};

const TYPED_USE = `
  const client = new EmotionClient({ apiKey: 'k', baseUrl: 'http://host:8080', maxThreads: 2 });
  const positional = new EmotionClient('k', 5 * 1024 * 1024, false, 3, 5);
  export async function use(file: Uint8Array | Blob | ReadableStream<Uint8Array>): Promise<string> {
    const options: UploadOptions = { model: '7emotions', onProgress: ({ progress }) => void progress.toFixed() };
    const id: string = await client.asynch.upload(file, options);
    const { emotions }: AsynchResult = await positional.asynch.emotions(id, 20, 5000);
    for await (const step of client.asynch.timeline(id)) step.seconds.toFixed();
    const { all_predictions, speechSeconds }: DiscreteResult = await client.discrete.emotions(file);
    try {
      await client.asynch.delete(id);
    } catch (error) {
      if (error instanceof UndertoneError) return error.code ?? error.message;
    }
    // @ts-expect-error unknown model
    await client.asynch.classify(file, { model: '9emotions' });
    // @ts-expect-error intervalSeconds is the step of the timeline; interval is the delay between polls
    await client.asynch.upload(file, { interval: 5000 });
    return emotions[0]?.emotion ?? String(all_predictions.happy + (speechSeconds ?? 0));
  }
`;

const IMPORT = `import { type AsynchResult, type DiscreteResult, EmotionClient, UndertoneError, type UploadOptions } from '@undertone/sdk';`;

/** What the examples of the README take from the text around them. */
const GIVEN = [
  'declare const client: EmotionClient;',
  'declare const requestId: string;',
  'declare const samples: AsyncIterable<Uint8Array>;',
  'declare const request: Request;',
];

describe('the packed package', () => {
  let installed: Installed;
  before(async () => {
    installed = await installPacked();
  });
  after(() => installed.remove());

  test('contains all files and has no dependencies', async () => {
    assert.deepEqual(installed.files, [
      'LICENSE',
      'README.md',
      'browser.cjs',
      'browser.js',
      'index.cjs',
      'index.d.cts',
      'index.d.ts',
      'index.js',
      'package.json',
    ]);
    const home = join(installed.folder, 'node_modules/@undertone/sdk');
    const manifest = JSON.parse(await readFile(join(home, 'package.json'), 'utf8'));
    assert.equal(manifest.dependencies, undefined);
    assert.equal(manifest.private, undefined);
    const types = await readFile(join(home, 'index.d.ts'), 'utf8');
    assert.doesNotMatch(types, /import|@undertone\/contract|typebox/i);
    for (const file of ['index.js', 'index.cjs', 'browser.js', 'browser.cjs']) {
      const imports = (await readFile(join(home, file), 'utf8')).matchAll(/(?:from|require\() ?"([^"]+)"/g);
      for (const [, name] of imports) assert.match(name ?? '', /^node:/);
    }
  });

  test('publint and attw find nothing to improve', async () => {
    const pkgDir = join(installed.folder, 'node_modules/@undertone/sdk');
    const { messages } = await publint({ pkgDir, pack: false, strict: true });
    assert.deepEqual(messages, []);
    const packed = createPackageFromTarballData(await readFile(installed.tarball));
    const found = await checkPackage(packed);
    assert(found.types);
    assert.deepEqual(found.problems, []);
  });

  test('works as ESM and CommonJS on every installed Node from 20 on, Deno and Bun', async (t) => {
    const server = await flakyServer(t);
    const recording = await temporaryFile(t, RECORDING.length);
    const env = environmentOf(server);
    for (const { command, args, version } of await runtimes()) {
      for (const [name, program] of Object.entries(PROGRAMS)) {
        const file = join(installed.folder, name);
        await writeFile(file, program);
        const { stdout, stderr } = await run(command, [...args, file, recording], { env });
        const { result, discrete, kinds } = JSON.parse(stdout);
        assert.deepEqual(result.emotions, TIMELINE, `${version} ${name}`);
        assert.deepEqual(discrete, DISCRETE_ANSWER);
        assert.deepEqual(kinds, [true, true, 'MissingFileError']);
        assert(server.assembled(result.request_id).equals(RECORDING));
        assert.equal(stderr, '', 'no warnings');
      }
    }
  });

  test('runs the first example of its README', async (t) => {
    const server = await flakyServer(t);
    const readme = await readFile(join(installed.folder, 'node_modules/@undertone/sdk/README.md'), 'utf8');
    const [, example = ''] = /```ts\n(.*?)```/s.exec(readme) ?? [];
    await writeFile(join(installed.folder, 'example.mjs'), example);
    for (const name of ['hello.wav', 'interview.wav'])
      await writeFile(join(installed.folder, name), RECORDING);
    const { stdout } = await run(process.execPath, ['example.mjs'], {
      cwd: installed.folder,
      env: environmentOf(server),
    });
    assert.equal(stdout, '0 happy\n5 sad\n6010 angry\n');
    assert.deepEqual([server.calls('discrete').length, server.uploads.size, server.deleted.size], [1, 1, 1]);
  });

  test('type-checks in ESM, CommonJS and browser projects without other libraries, with its README and the contract', async () => {
    const strict = { strict: true, noEmit: true, target: 'es2022', exactOptionalPropertyTypes: true };
    const node = { ...strict, module: 'nodenext', lib: ['es2023'], types: ['node'], typeRoots };
    const page = { ...strict, module: 'esnext', moduleResolution: 'bundler', types: [], typeRoots: [] };
    const program = `${IMPORT}${TYPED_USE}`;
    const contract = fileURLToPath(import.meta.resolve('@undertone/contract'));
    await typeCheck(installed.folder, {
      node: {
        compilerOptions: { ...node, skipLibCheck: true },
        files: { 'user.mts': program, 'user.cts': program },
      },
      page: {
        compilerOptions: { ...page, lib: ['es2022', 'dom', 'dom.iterable'], skipLibCheck: false },
        files: { 'page.ts': program },
      },
      readme: {
        compilerOptions: {
          ...node,
          exactOptionalPropertyTypes: false,
          lib: ['es2023', 'dom', 'dom.iterable'],
          skipLibCheck: true,
        },
        files: await readmeExamples(installed),
      },
      contract: {
        compilerOptions: {
          ...{ ...node, target: 'es2024', lib: ['es2024'], skipLibCheck: true },
          ...{ allowImportingTsExtensions: true, paths: { '@undertone/contract': [contract] } },
        },
        files: { 'published.ts': await readFile(new URL('published-types.ts', import.meta.url), 'utf8') },
      },
    });
  });

  test('publishes the types of the contract with their comments', async () => {
    const types = await readFile(join(installed.folder, 'node_modules/@undertone/sdk/index.d.ts'), 'utf8');
    assert.match(types, /\/\*\* Expected calibration error\. \*\/\s+ece: number;/);
    assert.doesNotMatch(types, /\$1/, 'no name that the bundler had to change');
  });

  test('loads in a test runner with a simulated page, which resolves the browser build as CommonJS', async () => {
    const file = join(installed.folder, 'jsdom-like.cjs');
    await writeFile(file, JSDOM_LIKE);
    const { stdout } = await run(process.execPath, ['--conditions=browser', file]);
    const hint = 'A browser cannot open a path: pass a File or Blob.';
    assert.deepEqual(JSON.parse(stdout), ['browser.cjs', true, hint]);
    const imported = `import { EmotionClient } from '@undertone/sdk'; console.log(import.meta.resolve('@undertone/sdk'), typeof EmotionClient);`;
    await writeFile(join(installed.folder, 'page.mjs'), imported);
    const page = await run(process.execPath, ['--conditions=browser', join(installed.folder, 'page.mjs')]);
    assert.match(page.stdout, /browser\.js function$/m);
  });

  test('adds less than 19 kB to a page, minified and compressed', async () => {
    const { outputFiles } = await build({
      stdin: { contents: `export * from '@undertone/sdk';`, resolveDir: installed.folder },
      bundle: true,
      minify: true,
      platform: 'browser',
      format: 'esm',
      write: false,
    });
    const bytes = gzipSync(outputFiles[0]?.contents ?? '').length;
    assert(bytes > 1_000 && bytes <= 18_600, `${bytes} bytes`);
  });

  test('bundles for a browser without Node modules and works with the globals of a page', async (t) => {
    const server = await flakyServer(t);
    const page = `
      import { EmotionClient } from '@undertone/sdk';
      const client = new EmotionClient({ ...settings, partSize: 1024 * 1024 });
      globalThis.answer = client.asynch.classify(new Blob([recording]));
    `;
    const { outputFiles } = await build({
      stdin: { contents: page, resolveDir: installed.folder },
      bundle: true,
      platform: 'browser',
      format: 'iife',
      write: false,
      logLevel: 'silent',
    });
    const context = createContext({
      ...{ AbortController, AbortSignal, Blob, clearTimeout, console, fetch, FormData, Headers, performance },
      ...{ ReadableStream, setTimeout, Uint8Array, URL, URLSearchParams },
      settings: server.settings,
      recording: RECORDING,
    });
    runInContext(outputFiles[0]?.text ?? '', context);
    const { answer } = context as { answer?: Promise<{ request_id: string }> };
    const result = await answer;
    assert(result);
    assert(server.assembled(result.request_id).equals(RECORDING));
  });
});

/** Each example of the README as a program, with what it takes from the text around it. */
async function readmeExamples({ folder }: Installed): Promise<Record<string, string>> {
  const readme = await readFile(join(folder, 'node_modules/@undertone/sdk/README.md'), 'utf8');
  const examples = [...readme.matchAll(/```(\w+)\n(.*?)```/gs)];
  assert(examples.length >= 8);
  const programs = examples.map(([, language, example = ''], i) => {
    assert.equal(language, 'ts');
    const imported = /import \{(.*?)\} from '@undertone\/sdk'/s.exec(example)?.[1] ?? '';
    const given = GIVEN.filter((line) => !example.includes(`const ${/const (\w+)/.exec(line)?.[1]} =`));
    const ours = ['EmotionClient', 'fromMicrophone', 'webhooks'].filter((name) => !imported.includes(name));
    const head = `import { ${ours} } from '@undertone/sdk';\nvoid [${ours}];\n${given.join('\n')}\n`;
    return [`example-${i}.mts`, `${head}${example}\nexport {};\n`];
  });
  return Object.fromEntries(programs);
}

/** What jsdom has: a page without `fetch`, streams or crypto. Test runners evaluate modules in such a context. */
const JSDOM_LIKE = `
  const { readFileSync } = require('node:fs');
  const { createContext, runInContext } = require('node:vm');
  const file = require.resolve('@undertone/sdk');
  const context = createContext({ AbortController, AbortSignal, Blob, console, setTimeout, clearTimeout, URL });
  Object.assign(context, { window: context, module: { exports: {} } });
  runInContext('var exports = module.exports;' + readFileSync(file, 'utf8'), context);
  const { EmotionClient, UndertoneError } = context.module.exports;
  new EmotionClient({ apiKey: 'k' }).asynch.upload('talk.wav').catch((error) => {
    console.log(JSON.stringify([file.split('/').at(-1), error instanceof UndertoneError, error.message]));
  });
`;

function environmentOf({ settings }: FlakyServer): Record<string, string> {
  const { PATH = '', HOME = '' } = process.env;
  return {
    PATH,
    HOME,
    SERVICE_API_KEY: settings.apiKey,
    SERVICE_URL: settings.baseUrl,
  };
}
