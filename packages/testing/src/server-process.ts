import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../server/src/main.ts', import.meta.url));

/** The real server as a process that can be killed and started again on the same data and port. */
export class ServerProcess {
  readonly key = 'a-key-of-no-value';
  readonly dataDir: string;
  readonly #env: Record<string, string>;
  #child: ChildProcess | undefined;
  #port = '0';

  constructor(dataDir: string, env: Record<string, string> = {}) {
    this.dataDir = dataDir;
    this.#env = { SERVICE_DATA_DIR: dataDir, SERVICE_LOG_LEVEL: 'info', ...env };
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [MAIN], {
      env: { ...process.env, ...this.#env, SERVICE_PORT: this.#port, SERVICE_API_KEY: this.key },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#child = child;
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    for (;;) {
      const address = /"url":"http:\/\/127\.0\.0\.1:(\d+)"/.exec(output);
      if (address?.[1]) {
        this.#port = address[1];
        return;
      }
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`the server ended: ${output}`);
      await sleep(10);
    }
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill(signal);
    await exit;
  }
}
