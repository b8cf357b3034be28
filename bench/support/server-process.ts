import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { PATHS } from '@undertone/contract';
import { freePort, isReady } from '@undertone/testing/ready';

const MAIN = fileURLToPath(new URL('../../packages/server/src/main.ts', import.meta.url));

export interface ServerProcess {
  readonly url: string;
  readonly key: string;
  readonly pid: number;
  isAlive(): boolean;
  /** A figure of /metrics, by its full name with labels. */
  metric(name: string): Promise<number>;
  /** Resident memory now, in MB (10^6 bytes). */
  residentMegabytes(): Promise<number>;
  /** The most resident memory since the last call, in MB. The kernel keeps it, so no peak is overlooked. */
  peakMegabytes(): Promise<number>;
  stop(): Promise<void>;
}

interface StartOptions {
  /** One of the caller's own, which stays; otherwise one that is removed with the server. */
  readonly dataDir?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** The real server in a process of its own, as `make serve` runs it: it applies its runtime flags itself. */
export async function startServerProcess(options: StartOptions = {}): Promise<ServerProcess> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'undertone-bench-')));
  const port = await freePort();
  const key = 'bench-key-of-no-value';
  const child = spawn(process.execPath, [MAIN], {
    env: {
      ...process.env,
      SERVICE_PORT: String(port),
      SERVICE_DATA_DIR: dataDir,
      SERVICE_API_KEY: key,
      SERVICE_LOG_LEVEL: 'fatal',
      ...options.env,
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const exited = once(child, 'exit');
  const isAlive = () => child.exitCode === null && child.signalCode === null;
  const pid = child.pid as number;
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; !(await isReady(url)); tries++) {
    if (tries > 300 || !isAlive()) throw new Error('the server did not become ready');
    await sleep(100);
  }
  const memory = async (field: 'VmRSS' | 'VmHWM') => {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    const kibibytes = new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1];
    return (Number(kibibytes) * 1024) / 1e6;
  };
  return {
    url,
    key,
    pid,
    isAlive,
    metric: async (name) => {
      const text = await (await fetch(url + PATHS.metrics)).text();
      const line = text.split('\n').find((entry) => entry.startsWith(`${name} `));
      return Number(line?.split(' ').at(-1));
    },
    residentMegabytes: () => memory('VmRSS'),
    peakMegabytes: async () => {
      const peak = await memory('VmHWM');
      await writeFile(`/proc/${pid}/clear_refs`, '5');
      return peak;
    },
    stop: async () => {
      child.kill('SIGTERM');
      await exited;
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true });
    },
  };
}
