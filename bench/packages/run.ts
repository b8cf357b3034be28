// Builds what is published and installs it into empty folders, with Node 20, 22 and 24 and every Python from 3.10 on. See ../README.md.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT, VOICES } from '@undertone/testing/paths';
import { startServerProcess } from '@undertone/testing/server-process';
import { tryInstalled } from '@undertone/testing/try-installed';
import { describeMachine, Limits, rounded } from '../support/report.ts';

const LIMIT_SECONDS = 60;
/** The first that runs TypeScript and the newest of each line. `undertone` does not run on Node 20; the SDK does. */
const NODES = { 'undertone and SDK': ['22.18.0', '22', '24'], 'SDK only': ['20'] };
const OLDEST_PYTHON = 10;

const run = promisify(execFile);
const VOICE = join(VOICES, 'angry-1013.wav');
const { PATH = '', HOME = homedir() } = process.env;
// Without the project's own Node and packages.
const path = PATH.split(delimiter).filter((entry) => !entry.startsWith(ROOT));

const SDK_USE = `
  new EmotionClient().discrete.emotions(process.argv[2]).then(({ main_emotion }) => console.log(main_emotion));`;
const SDK_PROGRAMS = {
  'use.mjs': `import { EmotionClient } from '@undertone/sdk';${SDK_USE}`,
  'use.cjs': `const { EmotionClient } = require('@undertone/sdk');${SDK_USE}`,
};
const PYTHON_USE = `
import sys, undertone_client
assert "site-packages" in undertone_client.__file__
print(undertone_client.EmotionClient().discrete.emotions(sys.argv[1]).main_emotion)`;

const limits = new Limits();
const folder = await mkdtemp(join(tmpdir(), 'undertone-packages-'));
const server = await startServerProcess();
const machine = describeMachine();
try {
  const packages = join(folder, 'packages');
  await run(process.execPath, [join(ROOT, 'scripts/package.ts'), packages]);
  const built = await readdir(packages);
  const find = (start: string, end: string) => {
    const name = built.find((one) => one.startsWith(start) && one.endsWith(end));
    if (name === undefined) throw new Error(`make package built no ${start}...${end}`);
    return join(packages, name);
  };
  const sdk = find('undertone-sdk-', '.tgz');
  const undertone = find(`undertone-${/sdk-(.*)\.tgz$/.exec(sdk)?.[1]}`, '.tgz');
  const env = { SERVICE_URL: server.url, SERVICE_API_KEY: server.key, HOME };

  for (const version of Object.values(NODES).flat()) {
    const node = await installNode(version);
    const ownPath = [join(node, '..'), ...path].join(delimiter);
    const user = join(folder, `sdk-${version}`);
    await install(user, ownPath, sdk);
    for (const [name, program] of Object.entries(SDK_PROGRAMS)) {
      await writeFile(join(user, name), program);
      const { stdout } = await run(node, [name, VOICE], { cwd: user, env });
      if (stdout !== 'angry\n') limits.miss(`SDK ${name} on Node ${version}: ${stdout}`);
    }
  }

  const seconds: Record<string, number> = {};
  for (const version of NODES['undertone and SDK']) {
    const node = await installNode(version);
    const user = join(folder, `undertone-${version}`);
    const started = performance.now();
    // An empty cache: everything is downloaded, as for a new user.
    await install(user, [join(node, '..'), ...path].join(delimiter), undertone, join(user, 'cache'));
    const { answer, answeredAt, classified } = await tryInstalled(user, node);
    seconds[version] = rounded((answeredAt - started) / 1000);
    const emotions = [answer.main_emotion, JSON.parse(classified).main_emotion];
    if (emotions.join() !== 'angry,angry') limits.miss(`undertone on Node ${version}: ${emotions}`);
    await rm(user, { recursive: true, force: true });
  }
  limits.atMost(
    'from npm install to the first answer',
    Math.max(...Object.values(seconds)),
    LIMIT_SECONDS,
    ' s',
  );

  for (const version of NODES['SDK only']) {
    const node = await installNode(version);
    const user = join(folder, `undertone-${version}`);
    await install(user, [join(node, '..'), ...path].join(delimiter), undertone);
    const program = join(user, 'node_modules/undertone/bin/undertone.js');
    const { stderr = '', code } = await run(node, [program, '--version']).catch((error) => error);
    if (code !== 1 || !stderr.includes('needs Node 22.18 or newer'))
      limits.miss(`undertone on Node ${version} does not say that it is too old: ${stderr}`);
  }

  const pythons = await findPythons();
  for (const [version, python] of Object.entries(pythons)) {
    for (const file of [find('undertone_client-', '.whl'), find('undertone_client-', '.tar.gz')]) {
      const venv = await mkdtemp(join(folder, 'venv-'));
      await run(python, ['-m', 'venv', venv]);
      await run(join(venv, 'bin/pip'), ['install', '--quiet', '--disable-pip-version-check', file]);
      const { stdout } = await run(join(venv, 'bin/python'), ['-I', '-c', PYTHON_USE, VOICE], { env });
      if (stdout !== 'angry\n') limits.miss(`${file} on Python ${version}: ${stdout}`);
      await rm(venv, { recursive: true, force: true });
    }
  }
  console.log(
    JSON.stringify({
      machine,
      sdk: Object.values(NODES).flat(),
      seconds_from_npm_install_to_the_first_answer: seconds,
      python: Object.keys(pythons),
    }),
  );
} finally {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}
limits.conclude();

/** An empty folder with the package in it. */
async function install(user: string, ownPath: string, tarball: string, cache?: string): Promise<void> {
  await mkdir(user);
  await writeFile(join(user, 'package.json'), '{ "name": "user", "private": true }');
  // Without scripts: that of the ONNX runtime would download GPU libraries.
  const args = ['install', '--silent', '--ignore-scripts', '--no-audit', '--no-fund', tarball];
  const env = { ...process.env, PATH: ownPath, ...(cache !== undefined && { npm_config_cache: cache }) };
  await run('npm', args, { cwd: user, env });
}

/** The program `node` of this version, from npm. */
async function installNode(version: string): Promise<string> {
  const name = `node-${process.platform}-${process.arch}`;
  const target = join(folder, `node-${version}`);
  const node = join(target, 'node_modules', name, 'bin/node');
  if (existsSync(node)) return node;
  await mkdir(target);
  await run('npm', ['install', '--silent', '--no-save', '--prefix', target, `${name}@${version}`]);
  return node;
}

/** One for each version that is installed here, from the oldest supported one on. */
async function findPythons(): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  const versions = await readdir(join(HOME, '.pyenv/versions')).catch(() => []);
  const folders = [...path, ...versions.map((name) => join(HOME, '.pyenv/versions', name, 'bin'))];
  for (let minor = OLDEST_PYTHON; minor < 20; minor++) {
    for (const python of folders.map((one) => join(one, `python3.${minor}`))) {
      const works = await run(python, ['-c', 'import ensurepip, venv']).then(
        () => true,
        () => false,
      );
      if (works) found[`3.${minor}`] ??= python;
    }
  }
  return found;
}
