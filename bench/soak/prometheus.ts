import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from '@undertone/testing/paths';
import { PrometheusServer } from '@undertone/testing/prometheus';
import { parse } from 'yaml';

const SHIPPED = join(ROOT, 'deploy/prometheus');
const RULES = join(SHIPPED, 'undertone.rules.yml');

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
  readonly #server: PrometheusServer;
  readonly #start = performance.now();

  static async start(program: string, url: string): Promise<Prometheus> {
    const config = parse(await readFile(join(SHIPPED, 'scrape.yml'), 'utf8'));
    config.rule_files = [RULES];
    config.scrape_configs[0].static_configs = [{ targets: [new URL(url).host] }];
    return new Prometheus(await PrometheusServer.start(config, program));
  }

  private constructor(server: PrometheusServer) {
    this.#server = server;
  }

  async alerts(): Promise<Alerts> {
    const range = `${Math.ceil((performance.now() - this.#start) / 60_000) + 1}m`;
    const named = async (state: string) => {
      const series = await this.#server.query(`count_over_time(ALERTS{alertstate="${state}"}[${range}])`);
      return [...new Set(series.map(({ metric }) => metric['alertname'] ?? ''))];
    };
    const { groups } = await this.#server.get<{ groups: { rules: { health: string }[] }[] }>(
      '/api/v1/rules?type=alert',
    );
    const shipped = parse(await readFile(RULES, 'utf8')).groups;
    const [scraped] = await this.#server.query(`sum_over_time(up{job="undertone"}[${range}])`);
    return {
      fired: await named('firing'),
      pending: await named('pending'),
      evaluated: groups.flatMap(({ rules }) => rules).filter(({ health }) => health === 'ok').length,
      shipped: shipped.flatMap(({ rules }: { rules: unknown[] }) => rules).length,
      scrapes: Number(scraped?.value[1] ?? 0),
    };
  }

  stop(): Promise<void> {
    return this.#server.remove();
  }
}
