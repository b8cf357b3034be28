// What is sampled, how it is shown and how much of it may grow. As a program it prints the table of a file that run.ts wrote:
// node bench/soak/figures.ts FILE
import { readFileSync } from 'node:fs';
import { type Limits, rounded } from '../support/report.ts';

interface Figure {
  readonly title: string;
  /** Of several samples, the mean or the largest. */
  readonly of: 'mean' | 'max' | 'sum';
  /** After the first sixth, and in any case a twentieth. */
  readonly mayGrow?: number;
}

export const FIGURES = {
  cores: { title: 'cores busy', of: 'mean' },
  memory: { title: 'memory, MB', of: 'mean', mayGrow: 25 },
  peak: { title: 'memory at most, MB', of: 'max' },
  heap: { title: 'heap, MB', of: 'mean', mayGrow: 10 },
  external: { title: 'external memory, MB', of: 'mean', mayGrow: 15 },
  files: { title: 'open files', of: 'mean', mayGrow: 10 },
  threads: { title: 'threads', of: 'mean', mayGrow: 2 },
  children: { title: 'child processes', of: 'mean', mayGrow: 2 },
  // SQLite's write-ahead log alone may have 4 MB.
  database: { title: 'database, MB', of: 'mean', mayGrow: 4 },
  recordings: { title: 'recordings, MB', of: 'mean', mayGrow: 25 },
  queued: { title: 'queued recordings at most', of: 'max' },
  loopP99: { title: 'event loop p99 at most, ms', of: 'max' },
  health: { title: '`/healthz` at most, ms', of: 'max' },
  clips: { title: 'short recordings', of: 'sum' },
  clipMedian: { title: 'their median, ms', of: 'mean' },
  clipP99: { title: 'their p99 at most, ms', of: 'max' },
} satisfies Record<string, Figure>;

export type FigureName = keyof typeof FIGURES;

/** Null where nothing was measured. */
export type Sample = Readonly<Record<FigureName, number | null>> & { readonly seconds: number };

const NAMES = Object.keys(FIGURES) as FigureName[];
const PERIODS = 6;

/** The samples in six periods: the first is the start, the second is what the last is compared with. */
function periodsOf(samples: readonly Sample[]): Sample[][] {
  const at = (period: number) => Math.round((period * samples.length) / PERIODS);
  return Array.from({ length: PERIODS }, (_, i) => samples.slice(at(i), at(i + 1)));
}

function figureOf(name: FigureName, samples: readonly Sample[]): number {
  const values = samples.map((sample) => sample[name]).filter((value) => value !== null);
  if (values.length === 0) return Number.NaN;
  const sum = values.reduce((total, value) => total + value, 0);
  const { of } = FIGURES[name];
  return of === 'max' ? Math.max(...values) : of === 'sum' ? sum : sum / values.length;
}

/** Markdown: a row for each figure, a column for each period. */
export function tableOf(samples: readonly Sample[]): string {
  const periods = periodsOf(samples);
  const minutes = (seconds = 0) => Math.round(seconds / 6) / 10;
  const columns = periods.map((period, i) => {
    const from = minutes(periods[i - 1]?.at(-1)?.seconds);
    return `minutes ${from} to ${minutes(period.at(-1)?.seconds)}`;
  });
  const rows = NAMES.map((name) => {
    const { title, mayGrow }: Figure = FIGURES[name];
    return [title, ...periods.map((period) => rounded(figureOf(name, period))), mayGrow ?? ''];
  });
  const table = [['', ...columns, 'may grow by'], Array(PERIODS + 2).fill('---'), ...rows];
  return table.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** Nothing may grow once the server is warm. */
export function checkGrowth(limits: Limits, samples: readonly Sample[]): void {
  const periods = periodsOf(samples);
  for (const name of NAMES) {
    const { title, mayGrow }: Figure = FIGURES[name];
    if (mayGrow === undefined) continue;
    const [warm, last] = [periods[1] ?? [], periods.at(-1) ?? []].map((period) => figureOf(name, period));
    const most = Math.max(mayGrow, 0.05 * (warm ?? 0));
    limits.atMost(
      `growth from the second sixth to the last: ${title}`,
      (last ?? Number.NaN) - (warm ?? Number.NaN),
      most,
    );
  }
}

if (import.meta.main) {
  const text = readFileSync(process.argv[2] ?? '', 'utf8');
  const lines = text.trimEnd().split('\n');
  console.log(tableOf(lines.map((line) => JSON.parse(line))));
}
