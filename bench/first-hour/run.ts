// Follows the README in an empty folder, like a new user, and measures the time to the first answer. See ../README.md.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { DEFAULT_PORT } from '@undertone/contract';
import { blocksOf } from '@undertone/testing/documents';
import { ROOT } from '@undertone/testing/paths';
import { freePort, isReady } from '@undertone/testing/ready';
import { chromium } from 'playwright-core';
import { describeMachine, Limits, rounded } from '../support/report.ts';

const LIMIT_SECONDS = 60;

const run = promisify(execFile);
const folder = await mkdtemp(join(tmpdir(), 'undertone-first-hour-'));
const clone = join(folder, 'undertone');
const port = await freePort();
const onItsPort = (text: string) => text.replaceAll(String(DEFAULT_PORT), String(port));
const { HOME = '', PATH = '', CHROMIUM = '/usr/bin/chromium' } = process.env;
// Uses the machine's own Node, not the project's, and the npm version of Node 20; newer ones are tested everywhere else.
await run('npm', ['install', '--silent', '--prefix', join(folder, 'npm'), 'npm@10']);
const path = [
  join(folder, 'npm', 'node_modules', '.bin'),
  ...PATH.split(':').filter((entry) => !entry.startsWith(ROOT)),
];
const env = { HOME, PATH: path.join(':'), SERVICE_PORT: String(port) };
const limits = new Limits();
const started = performance.now();
const seconds = () => rounded((performance.now() - started) / 1000);

await run('git', ['clone', '--quiet', ROOT, clone]);
const cloned = seconds();
const server = spawn('make', ['serve'], {
  cwd: clone,
  env,
  detached: true,
  stdio: ['ignore', 'pipe', 'inherit'],
});
const ended = once(server, 'close');
server.stdout.resume();
try {
  const keyFile = join(clone, '.undertone', 'first-key');
  while (!(await isReady(`http://127.0.0.1:${port}`)) || !existsSync(keyFile)) {
    if (server.exitCode !== null) throw new Error('make serve exited');
    await sleep(100);
  }
  const ready = seconds();
  const [, link = ''] = (await readFile(keyFile, 'utf8')).split('\n');

  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  const page = await browser.newPage();
  await page.goto(link);
  await page.getByRole('button', { name: 'angry-' }).first().click();
  await page.getByRole('table').waitFor();
  const answered = seconds();
  await browser.close();
  limits.atMost('from git clone to an emotion on the page', answered, LIMIT_SECONDS, ' s');

  const commands = blocksOf('README.md').filter(({ language, mark }) => language === 'sh' && mark === '');
  for (const { text, line } of commands) {
    // A new shell for each block, with a new key if it does not create one itself.
    const key = `export SERVICE_API_KEY=\${SERVICE_API_KEY:-$(npx undertone keys create again 2>/dev/null)}`;
    await run('bash', ['-euo', 'pipefail', '-c', `${key}\n${onItsPort(text)}`], { cwd: clone, env }).catch(
      (error: Error) => limits.miss(`README line ${line}: ${error.message}`),
    );
  }
  const report = {
    machine: describeMachine(),
    cloned,
    ready,
    answered_on_the_page: answered,
    commands: commands.length,
  };
  console.log(JSON.stringify(report));
} finally {
  if (server.exitCode === null && server.pid !== undefined) process.kill(-server.pid, 'SIGTERM');
  await ended;
  await rm(folder, { recursive: true, force: true });
}
limits.conclude();
