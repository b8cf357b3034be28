// The PyPI clients of the hosted original against the real server. See ../README.md.
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { type ServerProcess, startServerProcess } from '@undertone/testing/server-process';
import { talkWav } from '@undertone/testing/talk';
import { Limits } from '../support/report.ts';
import { environment, FOLDER } from './environment.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const VOICE = fileURLToPath(new URL('../../examples/voices/angry-1013.wav', import.meta.url));
/** The line of their tests with a hard-coded folder. */
const FIXTURES = /^TEST_AUDIO_DIR = .*$/m;

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'first,second,livekit' },
  },
});

const limits = new Limits();
const run = promisify(execFile);
const fixtures = await mkdtemp(join(tmpdir(), 'undertone-fixtures-'));
await copyFile(VOICE, join(fixtures, 'test_file.wav'));
await writeFile(join(fixtures, 'long_file_sample.wav'), talkWav(60));

const CHECKS: Record<string, (server: ServerProcess) => Promise<string>> = {
  'first generation (valenceai 0.5.1)': async (server) => {
    const python = await environment('valenceai-0.5.1', ['valenceai==0.5.1']);
    const env = {
      VALENCE_API_KEY: server.key,
      VALENCE_DISCRETE_URL: `${server.url}/emotionprediction`,
      VALENCE_ASYNCH_URL: `${server.url}/v1/asynch`,
    };
    return program(python, [join(HERE, 'first_generation.py'), fixtures], env);
  },
  'second generation (valenceai 1.0.5, its own end-to-end tests)': async (server) => {
    const python = await environment('valenceai-1.0.5', ['valenceai==1.0.5', 'pytest']);
    const tests = await endToEndTests(python);
    const env = {
      VALENCE_E2E_TEST: 'true',
      VALENCE_API_KEY: server.key,
      VALENCE_API_BASE_URL: server.url,
      VALENCE_WEBSOCKET_URL: server.url,
    };
    const printed = await program(python, ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', ...tests], env);
    if (!/\b10 passed\b/.test(printed) || /skipped|failed/.test(printed)) throw new Error(printed);
    return printed;
  },
  'livekit-plugins-valenceai (newest)': async (server) => {
    const python = await environment('livekit-plugins-valenceai', ['livekit-plugins-valenceai']);
    return program(python, [join(HERE, 'livekit_plugin.py'), server.url, VOICE], {
      VALENCE_API_KEY: server.key,
    });
  },
};

const server = await startServerProcess();
try {
  for (const [name, check] of Object.entries(CHECKS)) {
    if (!values.only.split(',').some((word) => name.includes(word))) continue;
    try {
      console.log(`${name}: ${lastLine(await check(server))}`);
    } catch (error) {
      const { stdout = '', stderr = '', message } = error as Error & { stdout?: string; stderr?: string };
      console.log(`${name}: failed\n${stdout}${stderr}${message}`);
      limits.miss(name);
    }
  }
} finally {
  await server.stop();
  await rm(fixtures, { recursive: true });
}
limits.conclude();

/** From the source archive on PyPI, unchanged except for the folder of their recordings. */
async function endToEndTests(python: string): Promise<string[]> {
  const folder = join(FOLDER, 'tests');
  await mkdir(folder, { recursive: true });
  const download = ['download', '--quiet', '--no-deps', '--no-binary', ':all:', '--no-build-isolation'];
  if (!(await readdir(folder)).some((name) => name.endsWith('.tar.gz'))) {
    await run(python, ['-m', 'pip', 'install', '--quiet', 'setuptools', 'wheel']);
    await run(python, ['-m', 'pip', ...download, '--dest', folder, 'valenceai==1.0.5']);
  }
  await run('tar', ['xzf', join(folder, 'valenceai-1.0.5.tar.gz'), '-C', folder]);
  const tests = join(folder, 'valenceai-1.0.5/tests');
  const names = (await readdir(tests)).filter((name) => name.startsWith('test_e2e_'));
  return Promise.all(
    names.map(async (name) => {
      const path = join(tests, name);
      const text = await readFile(path, 'utf8');
      await writeFile(path, text.replace(FIXTURES, `TEST_AUDIO_DIR = ${JSON.stringify(fixtures)}`));
      return path;
    }),
  );
}

async function program(
  python: string,
  args: readonly string[],
  env: Record<string, string>,
): Promise<string> {
  // In another folder, so that their tests cannot find our files.
  const { stdout } = await run(python, args, { cwd: fixtures, env: { PATH: process.env['PATH'], ...env } });
  return stdout;
}

function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1) ?? '';
}
