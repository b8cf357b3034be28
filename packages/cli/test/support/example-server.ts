import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort, isReady } from '@undertone/testing/ready';
import { ROOT } from './undertone.ts';

export interface ExampleServer {
  readonly port: number;
  printed(): string;
  stop(): Promise<void>;
}

/** A separate data folder and none of the developer's own settings. */
export function exampleEnvironment(dataDir: string): Record<string, string> {
  const { PATH = '', HOME = '' } = process.env;
  return { PATH, HOME, SERVICE_DATA_DIR: dataDir };
}

/** make must not run `npm ci`: other tests use the same node_modules at the same time. */
function assertInstalled(): void {
  const { status } = spawnSync('make', ['--question', 'node_modules/.installed'], { cwd: ROOT });
  assert.equal(status, 0, 'run `make install` first');
}

/** Runs a command that starts the server, on a free port, until the server is ready. */
export async function startExample(
  command: string,
  dataDir: string,
  settings: Record<string, string> = {},
): Promise<ExampleServer> {
  assertInstalled();
  const port = await freePort();
  const env = {
    ...exampleEnvironment(dataDir),
    ...settings,
    SERVICE_PORT: String(port),
    SERVICE_METRICS_OWNERS: 'true',
  };
  // A port in the command itself would clash with other tests.
  const onItsPort = command.replace(/SERVICE_PORT=\d+/, `SERVICE_PORT=${port}`);
  // In its own process group, so that a signal reaches make, npm and the server.
  const child = spawn('bash', ['-c', onItsPort], { cwd: ROOT, env, detached: true });
  const ended = once(child, 'close');
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (printed += piece));
  const server = {
    port,
    printed: () => printed,
    stop: async () => {
      if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGTERM');
      await ended;
    },
  };
  for (
    const deadline = Date.now() + 180_000;
    !(await isReady(`http://127.0.0.1:${port}`));
    await sleep(200)
  ) {
    if (child.exitCode === null && Date.now() < deadline) continue;
    await server.stop();
    throw new Error(`\`${command}\` started no server: ${printed}`);
  }
  return server;
}
