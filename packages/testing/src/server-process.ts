import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { PATHS } from '@undertone/contract';
import { COMMAND } from './paths.ts';
import { freePort, isReady } from './ready.ts';

const KEPT_LOG_CHARS = 200_000;
const START_TIMEOUT_MS = 180_000;

/** The real server as a process that can be killed and started again with the same data and port. */
export class ServerProcess {
  readonly key = 'a-key-of-no-value';
  readonly dataDir: string;
  /** Called with each line of its log. */
  onLine: ((line: string) => void) | undefined;
  readonly #env: Readonly<Record<string, string>>;
  readonly #ownsDataDir: boolean;
  #child: ChildProcess | undefined;
  #port: number | undefined;
  #log = '';

  constructor(dataDir: string, env: Readonly<Record<string, string>> = {}, ownsDataDir = false) {
    this.dataDir = dataDir;
    this.#env = env;
    this.#ownsDataDir = ownsDataDir;
    if (env['SERVICE_PORT'] !== undefined) this.#port = Number(env['SERVICE_PORT']);
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get pid(): number {
    return this.#child?.pid ?? Number.NaN;
  }

  get isAlive(): boolean {
    const child = this.#child;
    return child !== undefined && child.exitCode === null && child.signalCode === null;
  }

  /** Null while it runs, and after a signal that killed it. */
  get exitCode(): number | null {
    return this.#child?.exitCode ?? null;
  }

  /** Returns when the server is ready. */
  async start(): Promise<void> {
    this.#port ??= await freePort();
    const child = spawn(process.execPath, [COMMAND, 'serve'], {
      env: {
        ...withoutSettings(process.env),
        SERVICE_LOG_LEVEL: 'warn',
        SERVICE_DATA_DIR: this.dataDir,
        SERVICE_API_KEY: this.key,
        SERVICE_PORT: String(this.#port),
        ...this.#env,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#child = child;
    this.#log = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#log = (this.#log + text).slice(-KEPT_LOG_CHARS);
    });
    createInterface(child.stdout).on('line', (line) => this.onLine?.(line));
    const deadline = performance.now() + START_TIMEOUT_MS;
    while (!(await isReady(this.url))) {
      if (!this.isAlive || performance.now() > deadline)
        throw new Error(`the server did not start: ${this.#log}`);
      await sleep(20);
    }
  }

  /** The lines of its log about a recording, since the last start. */
  linesAbout(recording: string): Record<string, unknown>[] {
    const lines = this.#log.split('\n').filter((line) => line.includes(recording) && line.endsWith('}'));
    return lines.map((line) => JSON.parse(line)).filter((line) => line.recording === recording);
  }

  /** Sends the signal and waits until the process is gone. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    if (!this.isAlive || this.#child === undefined) return;
    const exit = once(this.#child, 'exit');
    this.#child.kill(signal);
    await exit;
  }

  /** Shuts down in order; removes the data folder if it was made by `startServerProcess`. */
  async stop(): Promise<void> {
    await this.end('SIGTERM');
    if (this.#ownsDataDir) await rm(this.dataDir, { recursive: true, force: true });
  }

  /** A value of /metrics, by its full name with labels. */
  async metric(name: string): Promise<number> {
    const text = await (await fetch(this.url + PATHS.metrics)).text();
    const line = text.split('\n').find((entry) => entry.startsWith(`${name} `));
    return Number(line?.split(' ').at(-1));
  }

  /** Resident memory now, in MB (10^6 bytes). */
  residentMegabytes(): Promise<number> {
    return this.#memory('VmRSS');
  }

  /** Peak resident memory since the last call, in MB. The kernel tracks it, so no peak is missed. */
  async peakMegabytes(): Promise<number> {
    const peak = await this.#memory('VmHWM');
    await writeFile(`/proc/${this.pid}/clear_refs`, '5');
    return peak;
  }

  async #memory(field: 'VmRSS' | 'VmHWM'): Promise<number> {
    const status = await readFile(`/proc/${this.pid}/status`, 'utf8');
    const kibibytes = new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1];
    return (Number(kibibytes) * 1024) / 1e6;
  }
}

/** Starts a server with a temporary data folder; `stop` removes it. */
export async function startServerProcess(env: Readonly<Record<string, string>> = {}): Promise<ServerProcess> {
  const server = new ServerProcess(await mkdtemp(join(tmpdir(), 'undertone-server-')), env, true);
  await server.start();
  return server;
}

/** The environment without the settings of the developer's own server. */
function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('SERVICE_')));
}
