import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { PATHS } from '@undertone/contract';

const MAIN = fileURLToPath(new URL('../../../server/src/main.ts', import.meta.url));

export interface RealServer {
  readonly origin: string;
  /** The settings of a client of this server. */
  readonly settings: { apiKey: string; discreteUrl: string; asynchUrl: string; showProgress: false };
  stop(): Promise<void>;
}

/** The real server with the real model, in a process of its own and with a data folder that goes away again. */
export async function startRealServer(env: Record<string, string> = {}): Promise<RealServer> {
  const dataDir = await mkdtemp(join(tmpdir(), 'undertone-sdk-server-'));
  const port = await freePort();
  const apiKey = 'a-key-for-the-real-server';
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(process.execPath, [MAIN], {
    env: {
      PATH,
      HOME,
      SERVICE_PORT: String(port),
      SERVICE_DATA_DIR: dataDir,
      SERVICE_API_KEY: apiKey,
      ...env,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(child, 'close');
  const origin = `http://127.0.0.1:${port}`;
  for (const deadline = Date.now() + 60_000; !(await isReady(origin)); await sleep(100)) {
    if (child.exitCode !== null || Date.now() > deadline) throw new Error('the server did not become ready');
  }
  return {
    origin,
    settings: {
      apiKey,
      discreteUrl: `${origin}/v1/discrete/emotion`,
      asynchUrl: `${origin}/v1/asynch`,
      showProgress: false,
    },
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

async function isReady(origin: string): Promise<boolean> {
  return fetch(origin + PATHS.ready).then(
    ({ ok }) => ok,
    () => false,
  );
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}
