import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';

/** The machine in one line. A load average well above zero at the start means noisy figures. */
export function describeMachine(): string {
  const cpu = cpus()[0]?.model.trim() ?? 'unknown processor';
  const gibibytes = Math.round(totalmem() / 2 ** 30);
  const load = loadavg()[0]?.toFixed(1);
  return `${cpu} (${process.arch}), ${availableParallelism()} cores, ${gibibytes} GiB, Node ${process.version}, load average ${load}`;
}

/** Collects the missed limits of a bench and prints one line for each. */
export class Limits {
  readonly #missed: string[] = [];

  atMost(what: string, value: number, limit: number, unit = ''): void {
    // Not `value > limit`: NaN means that nothing was measured, so the limit was not met.
    if (!(value <= limit)) this.miss(`${what}: ${rounded(value)}${unit}, limit ${limit}${unit}`);
  }

  atLeast(what: string, value: number, limit: number, unit = ''): void {
    if (!(value >= limit)) this.miss(`${what}: ${rounded(value)}${unit}, at least ${limit}${unit} expected`);
  }

  miss(what: string): void {
    this.#missed.push(what);
  }

  /** Prints at most `show` lines. */
  conclude(show = 20): void {
    for (const what of this.#missed.slice(0, show)) console.log(`MISSED: ${what}`);
    if (this.#missed.length > show) console.log(`MISSED: ${this.#missed.length - show} more`);
    if (this.#missed.length === 0) console.log('All limits met.');
    else process.exitCode = 1;
  }
}

export function rounded(value: number): number {
  return Number(value.toPrecision(value < 100 ? 3 : 4));
}

export function median(list: readonly number[]): number {
  return list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)] ?? Number.NaN;
}

export function percentile(list: readonly number[], share: number): number {
  const sorted = list.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}
