import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort, isReady } from '@undertone/testing/ready';
import { ROOT } from './undertone.ts';

/** What make looks at to know that npm has done its part. */
const INSTALLED = 'node_modules/.installed';

export interface ExampleServer {
  readonly port: number;
  printed(): string;
  stop(): Promise<void>;
}

/**
 * The environment of the examples: a data folder of their own and nothing of the settings of whoever runs the tests. What
 * npm installs is taken as it is: a test must not install it again under the feet of the others.
 */
export function exampleEnvironment(dataDir: string): Record<string, string> {
  const { PATH = '', HOME = '' } = process.env;
  return { PATH, HOME, SERVICE_DATA_DIR: dataDir, MAKEFLAGS: `--old-file=${INSTALLED}` };
}

/** Runs a command that starts the server, on a free port, until the server is ready. */
export async function startExample(command: string, dataDir: string): Promise<ExampleServer> {
  assert.ok(existsSync(join(ROOT, INSTALLED)), 'the examples need what `make install` brings');
  const port = await freePort();
  const env = { ...exampleEnvironment(dataDir), SERVICE_PORT: String(port) };
  // In a group of its own: make and npm stand between us and the server, and a signal has to reach all of them.
  // One that the command itself names would be the same for everybody.
  const onItsPort = command.replace(/SERVICE_PORT=\d+/, `SERVICE_PORT=${port}`);
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
    throw new Error(`\`${command}\` gave no server: ${printed}`);
  }
  return server;
}
