import { readdir, readFile } from 'node:fs/promises';
import { PATHS } from '@undertone/contract';
import { descendants } from '@undertone/testing/descendants';
import type { ServerProcess } from '@undertone/testing/server-process';
import { median } from '../support/report.ts';
import type { FigureName } from './figures.ts';

/** What one look at the process shows. */
type Look = Readonly<Record<'memory' | 'heap' | 'external' | 'files' | 'threads' | 'children', number>>;

/** Ticks of `/proc/PID/stat`: always this many per second on Linux. */
const TICKS = 100;

/** Looks at the server from outside and through /metrics, several times for each sample. */
export class Sampler {
  readonly #server: ServerProcess;
  #looks: Look[] = [];
  #loopP99: number[] = [];
  #queued: number[] = [];
  #last: { at: number; cpuSeconds: number } | undefined;

  constructor(server: ServerProcess) {
    this.#server = server;
  }

  /** Reads /metrics as Prometheus would. */
  async look(): Promise<void> {
    const { pid, url } = this.#server;
    const metrics = await (await fetch(url + PATHS.metrics)).text();
    const [files, threads, children, memory] = await Promise.all([
      readdir(`/proc/${pid}/fd`),
      readdir(`/proc/${pid}/task`),
      descendants(pid),
      this.#server.residentMegabytes(),
    ]);
    this.#looks.push({
      memory,
      heap: metricOf(metrics, 'nodejs_heap_size_used_bytes') / 1e6,
      external: metricOf(metrics, 'nodejs_external_memory_bytes') / 1e6,
      files: files.length,
      threads: threads.length,
      children: children.length,
    });
    this.#loopP99.push(1_000 * metricOf(metrics, 'undertone_event_loop_delay_p99_seconds'));
    this.#queued.push(metricOf(metrics, 'undertone_asynch_requests{state="queued"}', 0));
  }

  /** Since the last one: medians of what varies with the moment, and the largest of what must never be large. */
  async take(): Promise<Partial<Record<FigureName, number>>> {
    const [looks, loopP99, queued] = [this.#looks, this.#loopP99, this.#queued];
    [this.#looks, this.#loopP99, this.#queued] = [[], [], []];
    const middle = (name: keyof Look) => median(looks.map((look) => look[name]));
    return {
      cores: await this.#coresBusy(),
      memory: middle('memory'),
      peak: await this.#server.peakMegabytes(),
      heap: middle('heap'),
      external: middle('external'),
      files: middle('files'),
      threads: middle('threads'),
      children: middle('children'),
      queued: Math.max(...queued),
      loopP99: Math.max(...loopP99),
    };
  }

  /** Of the server and the decoders that have ended. */
  async #coresBusy(): Promise<number> {
    const stat = await readFile(`/proc/${this.#server.pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // utime, stime, cutime, cstime
    const cpuSeconds = fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) / TICKS, 0);
    const now = { at: performance.now(), cpuSeconds };
    const before = this.#last;
    this.#last = now;
    if (before === undefined) return Number.NaN;
    return (1_000 * (now.cpuSeconds - before.cpuSeconds)) / (now.at - before.at);
  }
}

function metricOf(metrics: string, name: string, absent = Number.NaN): number {
  const line = metrics.split('\n').find((entry) => entry.startsWith(`${name} `));
  return line === undefined ? absent : Number(line.slice(name.length));
}

/** Responses with a status of 500 or more, by route. */
export function serverErrors(metrics: string): string[] {
  return metrics.split('\n').filter((line) => /^undertone_requests_total\{.*status="5\d\d"/.test(line));
}
