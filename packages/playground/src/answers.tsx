import { EMOTIONS, type Emotion, formatTimestamp } from '@undertone/contract';
import { useState } from 'preact/hooks';
import { describe, kindOf, LETTERS, percent, ranked } from './emotions.ts';
import type { Result } from './result.ts';

export function Badge({ emotion }: { readonly emotion: Emotion }) {
  return (
    <span class={`badge ${emotion}`} aria-hidden="true">
      {LETTERS[emotion]}
    </span>
  );
}

/** Every emotion of a short recording, the strongest first. */
export function Bars({ all }: { readonly all: Partial<Record<Emotion, number>> }) {
  return (
    <ul class="bars">
      {ranked(all).map(([emotion, share]) => (
        <li key={emotion}>
          <Badge emotion={emotion} />
          <span class="name">{emotion}</span>
          <span class="track" aria-hidden="true">
            <span class={`bar ${emotion}`} style={{ width: `${share * 100}%` }} />
          </span>
          <span class="share">{percent(share)}</span>
        </li>
      ))}
    </ul>
  );
}

/** How much of the recording was which emotion. */
export function Legend({ steps }: Pick<Result, 'steps'>) {
  const total = steps.reduce((sum, { start, end }) => sum + end - start, 0) || 1;
  const sums = new Map<string, number>();
  for (const step of steps) {
    const name = kindOf(step) === 'sure' ? step.emotion : kindOf(step);
    sums.set(name, (sums.get(name) ?? 0) + step.end - step.start);
  }
  return (
    <ul class="legend">
      {[...sums]
        .toSorted(([, a], [, b]) => b - a)
        .map(([name, seconds]) => (
          <li key={name}>
            {EMOTIONS.includes(name as Emotion) && <Badge emotion={name as Emotion} />}
            {name} {Math.round((seconds / total) * 100)} %
          </li>
        ))}
    </ul>
  );
}

const ROWS_AT_FIRST = 120;

/** The same as a table. A live one grows at its top. */
export function Table({ result, name }: { readonly result: Result; readonly name: string }) {
  const { steps, channels, from } = result;
  const [all, setAll] = useState(false);
  const ordered = from === 'stream' ? steps.toReversed() : steps;
  const rows = all ? ordered : ordered.slice(0, ROWS_AT_FIRST);
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must be able to do that */}
      <section class="rows" tabIndex={0} aria-label={`Table of ${name}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Time</th>
              {channels > 1 && <th scope="col">Channel</th>}
              <th scope="col">Emotion</th>
              <th scope="col">Confidence</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((step) => (
              <tr key={`${step.channel} ${step.start}`}>
                <td>{formatTimestamp(step.start)}</td>
                {channels > 1 && <td>{step.channel + 1}</td>}
                <td>
                  {kindOf(step) !== 'no speech' && <Badge emotion={step.emotion} />} {describe(step)}
                </td>
                <td>{kindOf(step) === 'no speech' ? '–' : percent(step.confidence)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {!all && ordered.length > rows.length && (
        <button type="button" class="quiet" onClick={() => setAll(true)}>
          Show all {ordered.length} rows
        </button>
      )}
    </>
  );
}
