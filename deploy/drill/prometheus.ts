import { readFileSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ROOT } from '@undertone/testing/paths';
import { PrometheusServer } from '@undertone/testing/prometheus';
import { parse, stringify } from 'yaml';

interface Rule {
  alert: string;
  expr: string;
  for?: string;
  labels: Record<string, string>;
}

interface Alert {
  readonly labels: Readonly<Record<string, string>>;
  readonly state: 'pending' | 'firing';
}

const RULES = readFileSync(join(ROOT, 'deploy/prometheus/undertone.rules.yml'), 'utf8');
const SCRAPE_SECONDS = 15;
const WATCH_MS = 200;

export const ALERT_NAMES: readonly string[] = (parse(RULES).groups as { rules: Rule[] }[]).flatMap(
  ({ rules }) => rules.map(({ alert }) => alert),
);

/**
 * Debian's prometheus with the shipped rules, once for each speed: 5 means that every time in the rules is a fifth of the
 * shipped one. Scrapes are as fast as the first speed asks for.
 */
export class Prometheus {
  readonly #server: PrometheusServer;
  readonly #targets: string;
  /** Since when each alert fires, by name, speed and subject. */
  readonly #firing = new Map<string, number>();
  /** Names of all alerts that ever fired. */
  readonly fired = new Set<string>();
  #stopped = false;

  static async start(parent: string, speeds: readonly [number, ...number[]]): Promise<Prometheus> {
    const folder = join(parent, 'prometheus');
    await mkdir(folder);
    const targets = join(folder, 'targets.json');
    await writeFile(targets, '[]');
    const rulesOf = (speed: number) => join(folder, `${speed}.rules.yml`);
    for (const speed of speeds) await writeFile(rulesOf(speed), quicken(RULES, speed));
    const scrape_interval = seconds(SCRAPE_SECONDS / speeds[0]);
    const file_sd_configs = [{ files: [targets], refresh_interval: '1s' }];
    const config = {
      global: { scrape_interval, scrape_timeout: scrape_interval },
      rule_files: speeds.map(rulesOf),
      scrape_configs: [{ job_name: 'undertone', file_sd_configs }],
    };
    const prometheus = new Prometheus(
      await PrometheusServer.start(config, process.env['PROMETHEUS_PROGRAM']),
      targets,
    );
    void prometheus.#watch();
    return prometheus;
  }

  private constructor(server: PrometheusServer, targets: string) {
    this.#server = server;
    this.#targets = targets;
  }

  /** Resolves when each of them that answers was scraped: a new list of targets takes some seconds. */
  async scrape(processes: readonly { readonly url: string; readonly isAlive: boolean }[]): Promise<void> {
    const hostOf = ({ url }: { url: string }) => new URL(url).host;
    const next = `${this.#targets}.next`;
    await writeFile(next, JSON.stringify([{ targets: processes.map(hostOf) }]));
    await rename(next, this.#targets);
    const alive = processes.filter(({ isAlive }) => isAlive).map(hostOf);
    for (let missing = alive; missing.length > 0; await sleep(WATCH_MS)) {
      const up = await this.#server.query('up{job="undertone"} == 1');
      missing = alive.filter((host) => !up.some(({ metric }) => metric['instance'] === host));
    }
  }

  /** Alerts that fire now, as `name subject`. */
  firing(speed: number): string[] {
    return [...this.#firing.keys()]
      .filter((name) => name.startsWith(`${speed} `))
      .map((name) => name.slice(`${speed} `.length).trim());
  }

  /** Waits for an alert and returns when it was first seen. */
  async untilFiring(speed: number, alert: string, subject: string, withinMs: number): Promise<number> {
    const deadline = performance.now() + withinMs;
    for (;;) {
      const at = this.#firing.get(`${speed} ${alert} ${subject}`);
      if (at !== undefined) return at;
      if (performance.now() > deadline) {
        throw new Error(
          `${alert} ${subject} does not fire after ${withinMs / 1000} s; ${this.firing(speed)} do`,
        );
      }
      await sleep(WATCH_MS);
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#server.remove();
  }

  async #watch(): Promise<void> {
    for (; !this.#stopped; await sleep(WATCH_MS)) {
      const data = await this.#server.get<{ alerts: Alert[] }>('/api/v1/alerts').catch(() => null);
      if (data === null) continue;
      const now = data.alerts.filter(({ state }) => state === 'firing').map(({ labels }) => nameOf(labels));
      for (const name of this.#firing.keys()) if (!now.includes(name)) this.#firing.delete(name);
      for (const name of now) {
        if (!this.#firing.has(name)) this.#firing.set(name, performance.now());
        this.fired.add(name.split(' ')[1] ?? '');
      }
    }
  }
}

function nameOf({ speed, alertname, store, route }: Alert['labels']): string {
  return `${speed} ${alertname} ${store ?? route ?? ''}`;
}

/** The rules with every time divided: `for`, the intervals of the groups, and the ranges in the expressions. */
function quicken(rules: string, speed: number): string {
  const shorter = (duration: string) => seconds(secondsOf(duration) / speed);
  const groups = (parse(rules).groups as { name: string; interval: string; rules: Rule[] }[]).map(
    (group) => ({
      name: group.name,
      interval: shorter(group.interval),
      rules: group.rules.map((rule) => ({
        ...rule,
        expr: rule.expr.replace(/\[(\w+)\]/g, (_, range: string) => `[${shorter(range)}]`),
        ...(rule.for !== undefined && { for: shorter(rule.for) }),
        labels: { ...rule.labels, speed: String(speed) },
      })),
    }),
  );
  return stringify({ groups });
}

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 };

function secondsOf(duration: string): number {
  const [, count = '', unit = ''] = /^(\d+)([smh])$/.exec(duration) ?? [];
  const factor = UNITS[unit];
  if (factor === undefined) throw new Error(`${duration} is not a duration`);
  return Number(count) * factor;
}

function seconds(count: number): string {
  return `${Math.round(count * 1000)}ms`;
}
