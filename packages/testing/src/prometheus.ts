import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { dieWithParent } from './die-with-parent.ts';
import { freePort } from './ready.ts';

/** A real Prometheus in a temporary folder. `remove` deletes everything. */
export class PrometheusServer {
  readonly #folder: string;
  readonly #child: ChildProcess;
  readonly #url: string;

  /** The paths in the configuration are absolute. */
  static async start(config: object, program = 'prometheus'): Promise<PrometheusServer> {
    const folder = await mkdtemp(join(tmpdir(), 'undertone-prometheus-'));
    // JSON is YAML too.
    await writeFile(join(folder, 'prometheus.yml'), JSON.stringify(config));
    const address = `127.0.0.1:${await freePort()}`;
    const flags = [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=error',
    ];
    // At a low priority, because its work is not the service's.
    const [command, args] = dieWithParent('nice', ['-n', '10', program, ...flags]);
    const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
    const server = new PrometheusServer(folder, child, `http://${address}`);
    while (!(await server.#isReady())) {
      if (child.exitCode !== null) throw new Error(`${program} did not start`);
      await sleep(100);
    }
    return server;
  }

  private constructor(folder: string, child: ChildProcess, url: string) {
    this.#folder = folder;
    this.#child = child;
    this.#url = url;
  }

  /** The data of an answer of its HTTP interface, such as `/api/v1/alerts`. */
  async get<T>(path: string): Promise<T> {
    const response = await fetch(this.#url + path);
    const { status, data, error } = (await response.json()) as { status: string; data: T; error?: string };
    if (status !== 'success') throw new Error(`Prometheus: ${error}`);
    return data;
  }

  async query(query: string) {
    type Series = { metric: Record<string, string>; value: [number, string] };
    return (await this.get<{ result: Series[] }>(`/api/v1/query?query=${encodeURIComponent(query)}`)).result;
  }

  async remove(): Promise<void> {
    if (this.#child.exitCode === null) {
      const exit = once(this.#child, 'exit');
      this.#child.kill('SIGTERM');
      await exit;
    }
    await rm(this.#folder, { recursive: true, force: true });
  }

  #isReady(): Promise<boolean> {
    return fetch(`${this.#url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  }
}
