import { barOf, COLOURS, columns, paint } from './bars.ts';
import { writeStatus } from './client.ts';
import { explain } from './user-error.ts';

const BAR_WIDTH = 20;

/** Progress of many files: one bar for all, errors as they happen, a table at the end, and the exit code. */
export class Batch {
  readonly #what: string;
  readonly #total: number;
  readonly #shares = new Map<string, number>();
  readonly #counts = new Map<string, number>();
  #finished = 0;
  #failed = 0;

  /** `what` names the work, as in `Uploading`. */
  constructor(what: string, total: number) {
    this.#what = what;
    this.#total = total;
    this.#draw();
  }

  /** Progress of one file, 0 to 1. */
  progress(file: string, share: number): void {
    this.#shares.set(file, share);
    this.#draw();
  }

  /** Counts a finished file and the labels of its steps. */
  succeed(file: string, labels: Iterable<string>): void {
    for (const label of labels) this.#counts.set(label, (this.#counts.get(label) ?? 0) + 1);
    this.#finish(file);
  }

  fail(file: string, error: unknown): void {
    this.#failed++;
    process.exitCode = 1;
    this.print(process.stderr, `undertone: ${printable(file)}: ${explain(error)}`);
    this.#finish(file);
  }

  /** Writes a line above the bar. */
  print(stream: NodeJS.WriteStream, line: string): void {
    writeStatus('');
    stream.write(`${line}\n`);
    this.#draw();
  }

  /** Writes the summary and sets the exit code: 1 if all files failed, 3 if some did. */
  end(stream: NodeJS.WriteStream, unit: string, skipped = 0): void {
    writeStatus('');
    const done = this.#finished - this.#failed;
    if (this.#failed > 0) process.exitCode = done + skipped > 0 ? 3 : 1;
    const remarks = [
      ...(skipped > 0 ? [`${skipped} done before`] : []),
      ...(this.#failed > 0 ? [`${this.#failed} failed`] : []),
    ];
    const counts = [`${done} of ${countOf(this.#total, 'file')}`, ...remarks].join(', ');
    const nothing = `Nothing to do: ${countOf(skipped, 'file')} done before.`;
    const first = this.#total === 0 ? nothing : counts;
    stream.write(`${[first, ...this.#table(unit)].join('\n')}\n`);
  }

  #table(unit: string): string[] {
    const all = [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
    const names = [...this.#counts.keys()].map((name) => name.length);
    return [...this.#counts]
      .toSorted(([, a], [, b]) => b - a)
      .map(([name, count]) => {
        const amount = `${String(count).padStart(6)} ${unit}${count === 1 ? ' ' : 's'}`;
        const figures = `${amount} ${((count / all) * 100).toFixed(0).padStart(3)} %`;
        const label = `  ${name.padEnd(Math.max(...names))} ${figures}  `;
        const bar = barOf(count / all, Math.min(BAR_WIDTH, columns() - label.length));
        return `${label}${paint(colourOf(name), bar)}`.trimEnd();
      });
  }

  #finish(file: string): void {
    this.#finished++;
    this.#shares.delete(file);
    this.#draw();
  }

  #draw(): void {
    const open = [...this.#shares.values()].reduce((sum, share) => sum + share, 0);
    const share = this.#total === 0 ? 1 : (this.#finished + open) / this.#total;
    const failed = this.#failed > 0 ? `, ${this.#failed} failed` : '';
    const counts = `${Math.floor(share * 100)} %  ${this.#finished} of ${countOf(this.#total, 'file')}${failed}`;
    writeStatus(progressLine(this.#what, share, counts, process.stderr.columns || 80));
  }
}

/** What is done, a bar and figures. On a narrow terminal the bar gets shorter first, then the words. */
export function progressLine(what: string, share: number, figures: string, columns: number): string {
  const room = columns - 1 - figures.length - 1;
  const width = Math.min(BAR_WIDTH, room - what.length - 1);
  if (width < 3) return `${what.slice(0, Math.max(0, room))} ${figures}`.trimStart().slice(0, columns - 1);
  return `${what} ${barOf(share, width).padEnd(width, '░')} ${figures}`;
}

/** `1 file`, `2 files`. */
export function countOf(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

/** Runs up to `limit` items concurrently and yields the results in the order of the items. */
export async function* inOrder<Item, Result>(
  items: readonly Item[],
  limit: number,
  work: (item: Item) => Promise<Result>,
): AsyncGenerator<Result> {
  const inFlight: Promise<Result>[] = [];
  for (const item of items) {
    if (inFlight.length === limit) yield await (inFlight.shift() as Promise<Result>);
    inFlight.push(work(item));
  }
  while (inFlight.length > 0) yield await (inFlight.shift() as Promise<Result>);
}

/** Replaces control characters, which a terminal would obey. */
export function printable(name: string): string {
  return name.replace(/\p{C}/gu, '?');
}

function colourOf(name: string) {
  return COLOURS[name as keyof typeof COLOURS] ?? 'dim';
}
