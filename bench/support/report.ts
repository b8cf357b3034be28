import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';

/** What the figures were measured on, in one line. A load far above zero before the start says that they are noisy. */
export function describeMachine(): string {
  const cpu = cpus()[0]?.model.trim() ?? 'unknown processor';
  const gibibytes = Math.round(totalmem() / 2 ** 30);
  const load = loadavg()[0]?.toFixed(1);
  return `${cpu} (${process.arch}), ${availableParallelism()} cores, ${gibibytes} GiB, Node ${process.version}, load average ${load}`;
}

/** The limits of one bench: collects what was missed, and ends with one line for each. */
export class Limits {
  readonly #missed: string[] = [];

  atMost(what: string, value: number, limit: number, unit = ''): void {
    // Not `value > limit`: a figure that is not a number was not measured, so its limit was not met.
    if (!(value <= limit)) this.miss(`${what}: ${rounded(value)}${unit}, limit ${limit}${unit}`);
  }

  atLeast(what: string, value: number, limit: number, unit = ''): void {
    if (!(value >= limit)) this.miss(`${what}: ${rounded(value)}${unit}, at least ${limit}${unit} expected`);
  }

  miss(what: string): void {
    this.#missed.push(what);
  }

  /** Many failures of one kind say no more than a few. */
  conclude(show = 20): void {
    for (const what of this.#missed.slice(0, show)) console.log(`MISSED: ${what}`);
    if (this.#missed.length > show) console.log(`MISSED: ${this.#missed.length - show} more`);
    if (this.#missed.length === 0) console.log('Every limit was met.');
    else process.exitCode = 1;
  }
}

export function rounded(value: number): number {
  return Number(value.toPrecision(value < 100 ? 3 : 4));
}

export function median(list: readonly number[]): number {
  return list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)] ?? Number.NaN;
}
