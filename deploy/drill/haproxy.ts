import { type ChildProcess, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@undertone/testing/ready';

/** How the balancer asks /readyz: the readiness probe of a Kubernetes manifest. */
export interface Probe {
  readonly periodSeconds: number;
  readonly timeoutSeconds: number;
  /** Kubernetes' default is 3. */
  readonly failureThreshold?: number;
}

/** What haproxy counted for one server. */
export interface ServerStats {
  readonly status: string;
  readonly connectionErrors: number;
  readonly responseErrors: number;
  readonly answered5xx: number;
}

/**
 * Debian's haproxy in front of API processes on fixed ports, a process or none on each. It neither repeats a request nor sends
 * it elsewhere, so that clients see every mistake.
 */
export class Haproxy {
  readonly url: string;
  readonly #statsUrl: string;
  readonly #child: ChildProcess;

  static async start(folder: string, ports: readonly number[], probe: Probe): Promise<Haproxy> {
    const { periodSeconds, timeoutSeconds, failureThreshold = 3 } = probe;
    const [port, statsPort] = [await freePort(), await freePort()];
    const config = join(folder, 'haproxy.cfg');
    const check = `check inter ${periodSeconds}s fall ${failureThreshold} rise 1`;
    await writeFile(
      config,
      `global
  maxconn 1000
defaults
  mode http
  retries 0
  timeout connect 2s
  timeout client 65s
  timeout server 65s
  timeout tunnel 1h
  timeout check ${timeoutSeconds}s
frontend stats
  bind 127.0.0.1:${statsPort}
  stats enable
  stats uri /stats
frontend undertone
  bind 127.0.0.1:${port}
  default_backend api
backend api
  balance roundrobin
  option httpchk
  http-check send meth GET uri /readyz
  http-check expect status 200
${ports.map((one, i) => `  server ${serverName(i)} 127.0.0.1:${one} ${check}`).join('\n')}
`,
    );
    const { HAPROXY_PROGRAM = 'haproxy' } = process.env;
    const child = spawn(HAPROXY_PROGRAM, ['-db', '-q', '-f', config], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    return new Haproxy(`http://127.0.0.1:${port}`, `http://127.0.0.1:${statsPort}/stats;csv`, child);
  }

  private constructor(url: string, statsUrl: string, child: ChildProcess) {
    this.url = url;
    this.#statsUrl = statsUrl;
    this.#child = child;
  }

  /** Waits until haproxy sends traffic to exactly these servers. */
  async untilUp(...servers: readonly number[]): Promise<void> {
    const wanted = servers.map(serverName).sort().join();
    for (;;) {
      const stats = await this.stats().catch(() => new Map<string, ServerStats>());
      const up = [...stats].filter(([, { status }]) => status.startsWith('UP')).map(([name]) => name);
      if (up.sort().join() === wanted) return;
      if (this.#child.exitCode !== null) throw new Error('haproxy did not start');
      await sleep(100);
    }
  }

  async stats(): Promise<Map<string, ServerStats>> {
    const [head = '', ...lines] = (await (await fetch(this.#statsUrl)).text()).trim().split('\n');
    const names = head.replace('# ', '').split(',');
    const rows = lines.map((line) => {
      const values = line.split(',');
      return Object.fromEntries(names.map((name, i) => [name, values[i] ?? '']));
    });
    const servers = rows.filter(
      ({ pxname, svname }) => pxname === 'api' && svname !== 'BACKEND' && svname !== 'FRONTEND',
    );
    return new Map(
      servers.map(({ svname = '', status = '', econ, eresp, hrsp_5xx }) => [
        svname,
        {
          status,
          connectionErrors: Number(econ),
          responseErrors: Number(eresp),
          answered5xx: Number(hrsp_5xx),
        },
      ]),
    );
  }

  stop(): void {
    this.#child.kill('SIGKILL');
  }
}

function serverName(index: number): string {
  return `api-${index + 1}`;
}
