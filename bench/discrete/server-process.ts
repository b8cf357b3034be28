import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { PATHS } from '@undertone/contract';
import { freePort, isReady } from '../../packages/server/test/support/ready.ts';

const MAIN = fileURLToPath(new URL('../../packages/server/src/main.ts', import.meta.url));

export interface ServerProcess {
  readonly url: string;
  readonly key: string;
  /** A figure of /metrics, by its full name with labels. */
  metric(name: string): Promise<number>;
  residentMegabytes(): Promise<number>;
  stop(): Promise<void>;
}

/** The real server in a process of its own, with a data folder that goes away again. */
export async function startServerProcess(env: Record<string, string> = {}): Promise<ServerProcess> {
  const dataDir = await mkdtemp(join(tmpdir(), 'undertone-bench-'));
  const port = await freePort();
  const key = 'bench-key-of-no-value';
  // Memory is laid out as `make serve` has it.
  const child = spawn(process.execPath, ['--max-semi-space-size=4', MAIN], {
    env: {
      ...process.env,
      MALLOC_ARENA_MAX: '2',
      SERVICE_PORT: String(port),
      SERVICE_DATA_DIR: dataDir,
      SERVICE_API_KEY: key,
      SERVICE_LOG_LEVEL: 'error',
      ...env,
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const exited = once(child, 'exit');
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; !(await isReady(url)); tries++) {
    if (tries > 300 || child.exitCode !== null) throw new Error('the server did not become ready');
    await sleep(100);
  }
  return {
    url,
    key,
    metric: async (name) => {
      const text = await (await fetch(url + PATHS.metrics)).text();
      const line = text.split('\n').find((entry) => entry.startsWith(`${name} `));
      return Number(line?.split(' ').at(-1));
    },
    residentMegabytes: async () => {
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
      return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
    },
    stop: async () => {
      child.kill('SIGTERM');
      await exited;
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
