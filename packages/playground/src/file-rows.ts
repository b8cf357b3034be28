// Many recordings as a table: its rows, their order, and the files to save.
import {
  csvLine,
  EMOTIONS,
  type Emotion,
  type LabelledPrediction,
  NO_SPEECH,
  UNSURE,
} from '@undertone/contract';
import type { Entry } from './entry.ts';
import type { Result } from './result.ts';
import { averagesOf, type Label, mainLabel, meanConfidence, sharesOf } from './summary.ts';

export interface FileRow {
  readonly entry: Entry;
  readonly seconds?: number;
  readonly label?: Label;
  readonly confidence?: number;
  readonly shares: readonly (readonly [Label, number])[];
  readonly truth?: Emotion;
}

export const COLUMNS = ['name', 'truth', 'length', 'emotion', 'confidence'] as const;

export type Column = (typeof COLUMNS)[number];

export interface Order {
  readonly column: Column;
  readonly descending: boolean;
}

const rows = new WeakMap<Entry, FileRow>();

/** The same row for the same entry, so that only changed rows are drawn again. */
export function rowOf(entry: Entry): FileRow {
  const known = rows.get(entry);
  if (known) return known;
  const { result, truth } = entry;
  const confidence = result && meanConfidence(result.steps);
  const label = result && mainLabel(result.steps);
  const row: FileRow = {
    entry,
    shares: result ? sharesOf(result.steps) : [],
    ...(result && { seconds: result.seconds }),
    ...(label !== undefined && { label }),
    ...(confidence !== undefined && { confidence }),
    ...(truth !== undefined && { truth }),
  };
  rows.set(entry, row);
  return row;
}

/** Rows without a value come last, in either direction. */
export function sorted(all: readonly FileRow[], { column, descending }: Order): FileRow[] {
  return all.toSorted((a, b) => {
    const [x, y] = [cellOf(a, column), cellOf(b, column)];
    if (x === undefined || y === undefined) return Number(x === undefined) - Number(y === undefined);
    const order =
      typeof x === 'number' ? x - Number(y) : x.localeCompare(String(y), undefined, { numeric: true });
    return descending ? -order : order;
  });
}

function cellOf({ entry, seconds, label, confidence, truth }: FileRow, column: Column) {
  return { name: entry.path, truth, length: seconds, emotion: label, confidence }[column];
}

/** One line per recording: its main emotion, and the share of time of every label. */
export function allToCsv(all: readonly FileRow[]): string {
  const labels: readonly Label[] = [...EMOTIONS, UNSURE, NO_SPEECH];
  const used = labels.filter((label) => all.some(({ shares }) => shares.some(([name]) => name === label)));
  const head = [
    'path',
    'label',
    'seconds',
    'emotion',
    'confidence',
    ...used.map((label) => `share ${label}`),
  ];
  const lines = all
    .filter(({ label }) => label !== undefined)
    .map(({ entry, truth, seconds, label, confidence, shares }) => [
      entry.path,
      truth,
      rounded(seconds),
      label,
      rounded(confidence),
      ...used.map((name) => rounded(shares.find(([other]) => other === name)?.[1] ?? 0)),
    ]);
  return [head, ...lines].map(csvLine).join('');
}

/** The service's own answers by path. */
export function allToJson(all: readonly FileRow[]): string {
  const answers = all.flatMap(({ entry: { path, result, truth } }) =>
    result ? [{ path, ...(truth && { label: truth }), model: result.model, answer: result.answer }] : [],
  );
  return `${JSON.stringify(answers, null, 2)}\n`;
}

/** Labelled recordings with a result of this model, for the confusion matrix. */
export function predictionsOf(all: readonly FileRow[], model: Result['model']): LabelledPrediction[] {
  return all.flatMap(({ truth, entry: { result } }) => {
    if (truth === undefined || result?.model !== model) return [];
    const probabilities = averagesOf(result.steps, model);
    return Object.keys(probabilities).length === 0
      ? []
      : [{ truth, probabilities: probabilities as Record<string, number> }];
  });
}

function rounded(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Number(value.toFixed(4));
}
