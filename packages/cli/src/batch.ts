import { barOf, COLOURS, columns, paint } from './bars.ts';
import { writeStatus } from './client.ts';
import { explain } from './user-error.ts';

const BAR_WIDTH = 20;

/** Many files: one bar for the whole, what went wrong as it happens, a table in the end, and the exit code. */
export class Batch {
  readonly #what: string;
  readonly #total: number;
  readonly #shares = new Map<string, number>();
  readonly #counts = new Map<string, number>();
  #finished = 0;
  #failed = 0;

  /** `what` is being done to `total` files. */
  constructor(what: string, total: number) {
    this.#what = what;
    this.#total = total;
    this.#draw();
  }

  /** How far one of the files is, 0 to 1. */
  progress(file: string, share: number): void {
    this.#shares.set(file, share);
    this.#draw();
  }

  /** One file is done; `labels` says how often what was heard in it. */
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

  /** Writes a line between two drawings of the bar. */
  print(stream: NodeJS.WriteStream, line: string): void {
    writeStatus('');
    stream.write(`${line}\n`);
    this.#draw();
  }

  /** The table, and an exit code that tells a part from the whole. */
  end(stream: NodeJS.WriteStream, unit: string, skipped = 0): void {
    writeStatus('');
    const done = this.#finished - this.#failed;
    if (this.#failed > 0) process.exitCode = done + skipped > 0 ? 3 : 1;
    const remarks = [
      ...(skipped > 0 ? [`${skipped} done before`] : []),
      ...(this.#failed > 0 ? [`${this.#failed} failed`] : []),
    ];
    const counts = [`${done} of ${this.#total} files`, ...remarks].join(', ');
    const first = this.#total === 0 ? `Nothing to do: all ${skipped} files were done before.` : counts;
    stream.write(`${[first, ...this.#table(unit)].join('\n')}\n`);
  }

  #table(unit: string): string[] {
    const all = [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
    const names = [...this.#counts.keys()].map((name) => name.length);
    return [...this.#counts]
      .toSorted(([, a], [, b]) => b - a)
      .map(([name, count]) => {
        const figures = `${String(count).padStart(6)} ${unit} ${((count / all) * 100).toFixed(0).padStart(3)} %`;
        const bar = barOf(count / all, Math.min(BAR_WIDTH, columns() - 40));
        return `  ${name.padEnd(Math.max(...names))} ${figures}  ${paint(colourOf(name), bar)}`.trimEnd();
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
    const bar = barOf(share, BAR_WIDTH).padEnd(BAR_WIDTH, '░');
    const failed = this.#failed > 0 ? `, ${this.#failed} failed` : '';
    const text = `${this.#what} ${bar} ${Math.floor(share * 100)} %  ${this.#finished} of ${this.#total} files${failed}`;
    writeStatus(text.slice(0, (process.stderr.columns || 80) - 1));
  }
}

/** File names may have control characters in them, which a terminal would obey. */
export function printable(name: string): string {
  return name.replace(/\p{C}/gu, '?');
}

function colourOf(name: string) {
  return COLOURS[name as keyof typeof COLOURS] ?? 'dim';
}
