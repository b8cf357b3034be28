import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { dieWithParent } from '@undertone/testing/die-with-parent';
import { ROOT } from '@undertone/testing/paths';
import { freePort } from '@undertone/testing/ready';
import { parse } from 'yaml';

const SHIPPED = join(ROOT, 'deploy/prometheus');

interface Alerts {
  /** Names of alerts that fired at any time. */
  readonly fired: string[];
  /** Their condition was true, but not for as long as they need. */
  readonly pending: string[];
  /** Rules that Prometheus evaluated without an error, and rules in the file. */
  readonly evaluated: number;
  readonly shipped: number;
  readonly scrapes: number;
}

/** A real Prometheus with the shipped scrape job and the shipped rules. */
export class Prometheus {
  readonly #folder: string;
  readonly #child: ChildProcess;
  readonly #url: string;
  readonly #start = performance.now();

  static async start(program: string, server: string): Promise<Prometheus> {
    const folder = await mkdtemp(join(tmpdir(), 'undertone-prometheus-'));
    const config = parse(await readFile(join(SHIPPED, 'scrape.yml'), 'utf8'));
    config.rule_files = [join(SHIPPED, 'undertone.rules.yml')];
    config.scrape_configs[0].static_configs = [{ targets: [new URL(server).host] }];
    // JSON is YAML too.
    await writeFile(join(folder, 'prometheus.yml'), JSON.stringify(config));
    const address = `127.0.0.1:${await freePort()}`;
    const flags = [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=error',
    ];
    // At a low priority, because its work is not the server's.
    const [command, args] = dieWithParent('nice', ['-n', '10', program, ...flags]);
    const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
    const prometheus = new Prometheus(folder, child, `http://${address}`);
    while (!(await prometheus.#isReady())) {
      if (child.exitCode !== null) throw new Error(`${program} did not start`);
      await sleep(100);
    }
    return prometheus;
  }

  private constructor(folder: string, child: ChildProcess, url: string) {
    this.#folder = folder;
    this.#child = child;
    this.#url = url;
  }

  async alerts(): Promise<Alerts> {
    const range = `${Math.ceil((performance.now() - this.#start) / 60_000) + 1}m`;
    const named = async (state: string) => {
      const series = await this.#query(`count_over_time(ALERTS{alertstate="${state}"}[${range}])`);
      return [...new Set(series.map(({ metric }) => metric['alertname'] ?? ''))];
    };
    const { groups } = await this.#get<{ groups: { rules: { health: string }[] }[] }>(
      '/api/v1/rules?type=alert',
    );
    const shipped = parse(await readFile(join(SHIPPED, 'undertone.rules.yml'), 'utf8')).groups;
    const [scraped] = await this.#query(`sum_over_time(up{job="undertone"}[${range}])`);
    return {
      fired: await named('firing'),
      pending: await named('pending'),
      evaluated: groups.flatMap(({ rules }) => rules).filter(({ health }) => health === 'ok').length,
      shipped: shipped.flatMap(({ rules }: { rules: unknown[] }) => rules).length,
      scrapes: Number(scraped?.value[1] ?? 0),
    };
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null) {
      const exit = once(this.#child, 'exit');
      this.#child.kill('SIGTERM');
      await exit;
    }
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #query(query: string) {
    const path = `/api/v1/query?query=${encodeURIComponent(query)}`;
    type Series = { metric: Record<string, string>; value: [number, string] };
    return (await this.#get<{ result: Series[] }>(path)).result;
  }

  async #get<T>(path: string): Promise<T> {
    const response = await fetch(this.#url + path);
    const { status, data, error } = (await response.json()) as { status: string; data: T; error?: string };
    if (status !== 'success') throw new Error(`Prometheus: ${error}`);
    return data;
  }

  #isReady(): Promise<boolean> {
    return fetch(`${this.#url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  }
}
