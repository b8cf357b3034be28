import {
  EMOTION_LETTERS,
  type Emotion,
  formatTimestamp,
  hasSpeech,
  labelOf,
  NO_SPEECH,
  UNSURE,
} from '@undertone/contract';
import { useState } from 'preact/hooks';
import { describe, percent, type Result, ranked, sharesOf } from './result.ts';

export function Badge({ emotion }: { readonly emotion: Emotion }) {
  return (
    <span class={`badge ${emotion}`} style={{ background: `var(--${emotion})` }} aria-hidden="true">
      {EMOTION_LETTERS[emotion]}
    </span>
  );
}

/** A bar for every emotion of a short recording, the most likely first. */
export function Bars({ all }: { readonly all: Partial<Record<Emotion, number>> }) {
  return (
    <ul class="bars">
      {ranked(all).map(([emotion, share]) => (
        <li key={emotion}>
          <Badge emotion={emotion} />
          <span class="name">{emotion}</span>
          <span class="track" aria-hidden="true">
            <span class="bar" style={{ width: `${share * 100}%`, background: `var(--${emotion})` }} />
          </span>
          <span class="share">{percent(share)}</span>
        </li>
      ))}
    </ul>
  );
}

/** The share of time of each emotion. */
export function Legend({ steps }: Pick<Result, 'steps'>) {
  return (
    <ul class="legend">
      {sharesOf(steps, labelOf).map(([label, share]) => (
        <li key={label}>
          {label !== NO_SPEECH && label !== UNSURE && <Badge emotion={label} />}
          {label} {Math.round(share * 100)} %
        </li>
      ))}
    </ul>
  );
}

const INITIAL_ROWS = 120;

/** The steps as a table. A live one shows the newest first. */
export function Table({ result, name }: { readonly result: Result; readonly name: string }) {
  const { steps, channels, from } = result;
  const [all, setAll] = useState(false);
  const ordered = from === 'stream' ? steps.toReversed() : steps;
  const rows = all ? ordered : ordered.slice(0, INITIAL_ROWS);
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and must be reachable by keyboard */}
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
              <tr key={`${step.channel ?? 0} ${step.start}`}>
                <td>{formatTimestamp(step.start)}</td>
                {channels > 1 && <td>{step.channel ?? 0}</td>}
                <td>
                  {hasSpeech(step) && <Badge emotion={step.emotion} />} {describe(step)}
                </td>
                <td>{hasSpeech(step) ? percent(step.confidence) : '–'}</td>
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
