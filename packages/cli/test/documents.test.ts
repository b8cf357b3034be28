import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { DEFAULT_PORT, DEFAULT_URL, PATHS } from '@undertone/contract';
import { SETTINGS } from '@undertone/server/settings';
import { type Block, blocksOf, codeRows, DOCUMENTS } from '@undertone/testing/documents';
import { TEST_MODELS } from '@undertone/testing/paths';
import { type ExampleServer, exampleEnvironment, startExample } from './support/example-server.ts';
import { ROOT } from './support/undertone.ts';

/** Blocks that are not run, and why. */
const BY_HAND = new Map([
  ['make test', 'this test is part of it'],
  ['make check', 'make test includes it'],
  ['make acceptance', 'it takes most of an hour'],
  [
    `make package # into dist-packages/
cd "$(mktemp -d)"
npm install --ignore-scripts "$OLDPWD"/dist-packages/undertone-[0-9]*.tgz
npx undertone serve`,
    'bench/packages does the same with several Nodes',
  ],
  [
    'export SERVICE_API_KEY=$(npx undertone keys create telephone)\nPORT=8081 npx node examples/telephone/server.ts',
    'packages/server/test/streams/telephone.test.ts runs it with a call',
  ],
]);

/** What npx does inside the clone, without starting npm. The first example that uses npx gets the real one. */
const NPX = 'npx() { "$@"; }\n';

const INTERPRETERS: Record<string, readonly string[]> = {
  sh: ['bash', '-euo', 'pipefail', '-c'],
  ts: [process.execPath, '--input-type=module-typescript', '--eval'],
  // `make test` installs the client into this Python.
  python: [join(ROOT, 'clients/python/.venv/bin/python'), '-c'],
};

const blocks = DOCUMENTS.flatMap(blocksOf);
const starts = blocks.filter(({ mark }) => mark === 'serve');
const examples = blocks.filter(({ language, mark }) => language in INTERPRETERS && mark === '');

const firstWithNpx = examples.find(({ text }) => text.includes('npx '));

let dataDir: string;
let server: ExampleServer;
let key = '';

before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'undertone-documents-'));
  // The first example of the README starts the server for all other examples.
  server = await startExample(starts[0]?.text ?? '', dataDir);
  // The key is created just after the server starts to listen.
  const file = join(dataDir, 'first-key');
  for (let tries = 0; key === ''; tries++) {
    assert.ok(tries < 1_000, server.printed());
    await sleep(20);
    if (existsSync(file)) [key = ''] = (await readFile(file, 'utf8')).split('\n');
  }
});

after(async () => {
  await server?.stop();
  await rm(dataDir, { recursive: true, force: true });
});

async function run(block: Block): Promise<string> {
  const { language } = block;
  const text = language === 'sh' && block !== firstWithNpx ? NPX + block.text : block.text;
  const [program = '', ...args] = INTERPRETERS[language] ?? [];
  const { PATH, ...environment } = exampleEnvironment(dataDir);
  // The examples use the default port, in their text or through a client's default: use this server's port instead.
  const onItsPort = (words: string) => words.replaceAll(String(DEFAULT_PORT), String(server.port));
  const { stdout } = await promisify(execFile)(program, [...args, onItsPort(text)], {
    cwd: ROOT,
    env: {
      ...environment,
      PATH: `${join(ROOT, 'node_modules/.bin')}:${PATH}`,
      SERVICE_MODELS_DIR: TEST_MODELS,
      SERVICE_API_KEY: key,
      SERVICE_URL: onItsPort(DEFAULT_URL),
    },
  });
  return stdout;
}

/** The types of a value, without its numbers and strings. */
function shapeOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return typeof value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member)]));
}

test('the first command of the README starts a server that creates a key', () => {
  assert.equal(starts[0]?.document, 'README.md');
  assert.equal(starts[0]?.text, 'make serve');
  assert.notEqual(key, '', server.printed());
});

for (const start of starts.slice(1)) {
  test(`${start.document} line ${start.line}: the command starts a server`, async () => {
    const another = await startExample(start.text, dataDir, { SERVICE_MODELS_DIR: TEST_MODELS });
    await another.stop();
  });
}

for (const example of examples) {
  test(`${example.document} line ${example.line}: the ${example.language} example works`, async () => {
    const printed = await run(example);
    assert.notEqual(printed.trim(), '', 'it should print something');
    const answer = blocks[blocks.indexOf(example) + 1];
    if (answer?.language === 'json') {
      assert.deepEqual(shapeOf(JSON.parse(printed)), shapeOf(JSON.parse(answer.text)));
    }
  });
}

test('every code block is run, or listed here with a reason', () => {
  assert.ok(examples.length >= 8);
  for (const block of blocks) {
    const { document, line, language, mark, text } = block;
    const where = `${document} line ${line}`;
    if (mark === 'by-hand') assert.ok(BY_HAND.has(text), `${where}: say in this test why it is not run`);
    else if (mark === 'serve') assert.equal(language, 'sh', where);
    else if (language === 'json')
      assert.ok(examples.includes(blocks[blocks.indexOf(block) - 1] as Block), where);
    else assert.ok(language === 'mermaid' || examples.includes(block), `${where}: ${language} is not run`);
  }
});

test('the operations page lists every setting with its default and the description in serve --help', () => {
  const rows = codeRows('docs/OPERATIONS.md');
  for (const { env, default: fallback, description } of Object.values(SETTINGS)) {
    assert.equal(rows.get(env), `${fallback === '' ? '' : `\`${fallback}\``} | ${description}`.trim(), env);
  }
});

test('the operations page lists exactly the metrics of the service', async () => {
  const response = await fetch(`http://127.0.0.1:${server.port}${PATHS.metrics}`);
  const lines = (await response.text()).matchAll(/^# HELP (undertone_\w+) (.*)$/gm);
  const rows = [...codeRows('docs/OPERATIONS.md')].filter(([name]) => name.startsWith('undertone_'));
  const served = [...lines].map(([, name, help]) => [name, help]);
  assert.deepEqual(Object.fromEntries(rows), Object.fromEntries(served));
});
