import { formatTimestamp, NO_SPEECH } from '@undertone/contract';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Badge } from './answers.tsx';
import type { Segment } from './segments.ts';
import { percent } from './summary.ts';

const INITIAL_ROWS = 120;

interface Props {
  readonly name: string;
  readonly segments: readonly Segment[];
  /** Names of the channels; absent for a single one. */
  readonly names?: readonly string[] | undefined;
  /** The position, which is highlighted and kept visible. */
  readonly at?: number | undefined;
  readonly onPlay?: ((seconds: number) => void) | undefined;
}

/** The segments as a table. A click on a row plays it, and the row that is playing is highlighted. */
export function Rows({ name, segments, names, at, onPlay }: Props) {
  const [all, setAll] = useState(false);
  const box = useRef<HTMLElement>(null);
  const shown = all ? segments : segments.slice(0, INITIAL_ROWS);
  const isNow = ({ start, end }: Segment) => at !== undefined && at >= start && at < end;
  const current = shown.findIndex(isNow);
  useEffect(() => {
    // Only inside the table: the page itself does not move.
    const row = box.current?.querySelectorAll('tbody tr')[current];
    if (!row || !box.current) return;
    const [outer, inner] = [box.current.getBoundingClientRect(), row.getBoundingClientRect()];
    const hidden = inner.top < outer.top + inner.height || inner.bottom > outer.bottom;
    if (hidden) box.current.scrollTop += inner.top - outer.top - outer.height / 2;
  }, [current]);
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and must be reachable by keyboard */}
      <section class="rows" ref={box} tabIndex={0} aria-label={`Table of ${name}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Time</th>
              {names && <th scope="col">Channel</th>}
              <th scope="col">Emotion</th>
              <th scope="col">Confidence</th>
              {onPlay && (
                <th scope="col">
                  <span class="hidden">Play</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {shown.map((segment) => (
              <Row
                key={`${segment.channel} ${segment.start}`}
                {...{ segment, names, onPlay }}
                now={isNow(segment)}
              />
            ))}
          </tbody>
        </table>
        {segments.length === 0 && <p class="note">Nothing matches the filter.</p>}
      </section>
      {!all && segments.length > shown.length && (
        <button type="button" class="quiet" onClick={() => setAll(true)}>
          Show all {segments.length} rows
        </button>
      )}
    </>
  );
}

interface RowProps extends Pick<Props, 'names' | 'onPlay'> {
  readonly segment: Segment;
  readonly now: boolean;
}

function Row({ segment, names, onPlay, now }: RowProps) {
  const { start, end, channel, label, confidence } = segment;
  const time = `${formatTimestamp(start)}–${formatTimestamp(end)}`;
  return (
    // The button in the row does the same for the keyboard.
    <tr class={now ? 'now' : ''} aria-current={now ? 'true' : undefined} onClick={() => onPlay?.(start)}>
      <td>{time}</td>
      {names && <td>{names[channel]}</td>}
      <td>
        <Badge label={label} /> {label}
      </td>
      <td>{label === NO_SPEECH ? '–' : percent(confidence)}</td>
      {onPlay && (
        <td class="end">
          <button
            type="button"
            class="quiet play"
            aria-label={`Play ${time}, ${label}`}
            onClick={(event) => {
              event.stopPropagation();
              onPlay(start);
            }}
          >
            ▶
          </button>
        </td>
      )}
    </tr>
  );
}
