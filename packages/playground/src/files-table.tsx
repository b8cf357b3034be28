import { formatTimestamp } from '@undertone/contract';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Badge, ShareBar } from './answers.tsx';
import type { Question } from './ask.tsx';
import { download } from './download.ts';
import { type Entry, isWorking, stateText } from './entry.ts';
import { explain } from './explain.ts';
import { allToCsv, allToJson, type Column, type FileRow, type Order, rowOf, sorted } from './file-rows.ts';
import { Matrices } from './matrix.tsx';
import { type Label, percent } from './summary.ts';

interface Props {
  readonly entries: readonly Entry[];
  readonly onOpen: (id: number) => void;
  readonly onClear: () => void;
  readonly ask: (question: Question) => Promise<boolean>;
}

const HEADS: Record<Column, string> = {
  name: 'Name',
  truth: 'Label',
  length: 'Length',
  emotion: 'Emotion',
  confidence: 'Confidence',
};

/** All recordings in one table: sort, filter, save all, and open one. */
export function FilesTable({ entries, onOpen, onClear, ask }: Props) {
  const [order, setOrder] = useState<Order>({ column: 'name', descending: false });
  const [only, setOnly] = useState<Label | ''>('');
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  const rows = useMemo(() => sorted(entries.map(rowOf), order), [entries, order]);
  const labels = [...new Set(rows.flatMap(({ label }) => label ?? []))].toSorted();
  const shown = only === '' ? rows : rows.filter(({ label }) => label === only);
  const hasLabels = rows.some(({ truth }) => truth !== undefined);
  const columns = (Object.keys(HEADS) as Column[]).filter((column) => column !== 'truth' || hasLabels);
  const working = entries.filter(isWorking).length;
  const failed = entries.filter(({ state }) => state === 'failed').length;
  const clear = async () => {
    const text = `Close all ${entries.length} recordings? Results of short recordings are stored nowhere else.`;
    if (await ask({ text, yes: 'Close all', danger: true })) onClear();
  };
  return (
    <article class="card" aria-labelledby="all">
      <h2 id="all" ref={heading} tabIndex={-1}>
        {entries.length} recordings
      </h2>
      <p class="note">
        {working > 0 ? `${entries.length - working} of ${entries.length} done` : 'All done'}
        {failed > 0 && `, ${failed} failed`}
      </p>
      {working > 0 && (
        <progress aria-label="Recordings done" max={entries.length} value={entries.length - working} />
      )}
      <Matrices rows={rows} />
      <p class="actions">
        <button type="button" onClick={() => download('undertone.csv', allToCsv(rows), 'text/csv')}>
          All as CSV
        </button>
        <button type="button" onClick={() => download('undertone.json', allToJson(rows), 'application/json')}>
          All as JSON
        </button>
        <label>
          Show{' '}
          <select value={only} onChange={(event) => setOnly(event.currentTarget.value as Label | '')}>
            <option value="">all emotions</option>
            {labels.map((label) => (
              <option key={label}>{label}</option>
            ))}
          </select>
        </label>
      </p>
      <div class="wide">
        <table class="files">
          <thead>
            <tr>
              {columns.map((column) => (
                <Head key={column} {...{ column, order, onOrder: setOrder }} />
              ))}
              <th scope="col">Shares</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <FileLine key={row.entry.id} {...{ row, hasLabels, onOpen }} />
            ))}
          </tbody>
        </table>
      </div>
      <footer class="ends">
        <button type="button" class="danger" onClick={() => void clear()}>
          Close all
        </button>
      </footer>
    </article>
  );
}

interface HeadProps {
  readonly column: Column;
  readonly order: Order;
  readonly onOrder: (order: Order) => void;
}

function Head({ column, order, onOrder }: HeadProps) {
  const isOn = order.column === column;
  const direction = order.descending ? 'descending' : 'ascending';
  return (
    <th scope="col" aria-sort={isOn ? direction : 'none'}>
      <button
        type="button"
        class="quiet sort"
        onClick={() => onOrder({ column, descending: isOn && !order.descending })}
      >
        {HEADS[column]}
        <span aria-hidden="true">{isOn ? (order.descending ? ' ▼' : ' ▲') : ''}</span>
      </button>
    </th>
  );
}

interface LineProps {
  readonly row: FileRow;
  readonly hasLabels: boolean;
  readonly onOpen: (id: number) => void;
}

/** Drawn again only if its recording has changed, so that hundreds of rows stay quick. */
function FileLine({ row, hasLabels, onOpen }: LineProps) {
  return useMemo(() => {
    const { entry, seconds, label, confidence, shares, truth } = row;
    return (
      <tr>
        <td>
          <button type="button" class="quiet open" onClick={() => onOpen(entry.id)}>
            {entry.path}
          </button>
        </td>
        {hasLabels && <td>{truth ?? '–'}</td>}
        <td>{seconds === undefined ? '–' : formatTimestamp(seconds)}</td>
        <td>
          {label ? (
            <>
              <Badge label={label} /> {label}
            </>
          ) : (
            <span class="note">
              {entry.error === undefined ? stateText(entry) : explain(entry.error).text}
            </span>
          )}
        </td>
        <td>{confidence === undefined ? '–' : percent(confidence)}</td>
        <td>
          <ShareBar shares={shares} />
        </td>
      </tr>
    );
  }, [row, hasLabels]);
}
