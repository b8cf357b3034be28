import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort, isReady } from '@undertone/testing/ready';

const MAIN = fileURLToPath(new URL('../../../server/src/main.ts', import.meta.url));

export interface RealServer {
  /** The settings of a client of this server. */
  readonly settings: { apiKey: string; baseUrl: string; showProgress: false };
  stop(): Promise<void>;
}

/** The real server with the real model, in a process of its own and with a data folder that is removed at the end. */
export async function startRealServer(env: Record<string, string> = {}): Promise<RealServer> {
  const dataDir = await mkdtemp(join(tmpdir(), 'undertone-sdk-server-'));
  const port = await freePort();
  const { PATH = '', HOME = '' } = process.env;
  const settings = {
    apiKey: 'a-key-for-the-real-server',
    baseUrl: `http://127.0.0.1:${port}`,
    showProgress: false,
  } as const;
  const child = spawn(process.execPath, [MAIN], {
    env: {
      ...{ PATH, HOME, SERVICE_PORT: String(port), SERVICE_DATA_DIR: dataDir },
      ...{ SERVICE_API_KEY: settings.apiKey, ...env },
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(child, 'close');
  while (!(await isReady(settings.baseUrl))) {
    if (child.exitCode !== null) throw new Error('the server did not become ready');
    await sleep(100);
  }
  return {
    settings,
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
