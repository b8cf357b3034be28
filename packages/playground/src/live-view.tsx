import { formatTimestamp, NO_SPEECH } from '@undertone/contract';
import { useEffect, useReducer, useState } from 'preact/hooks';
import type { LiveSession } from './live.ts';
import { Rows } from './rows.tsx';
import { segmentsOf } from './segments.ts';
import { headline } from './summary.ts';
import { Timeline } from './timeline.tsx';

/** The live timeline shows the last minute. */
const SHOWN_SECONDS = 60;

interface Props {
  readonly session: LiveSession;
  readonly announce: (text: string) => void;
}

/** A microphone session: the clock, what it hears, and its buttons side by side. */
export function LiveView({ session, announce }: Props) {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const [keep, setKeep] = useState(session.keep);
  useEffect(() => session.subscribe(() => redraw(undefined)), [session]);
  const { state, result, levels, seconds, level } = session;
  const isPaused = state === 'paused';
  const to = Math.max(SHOWN_SECONDS, seconds);
  const latest = result.steps.at(-1);
  const text = latest ? headline([latest]) : undefined;
  useEffect(() => {
    if (text && text !== NO_SPEECH) announce(text);
  }, [text?.split(',')[0]]);
  return (
    <>
      <p class="summary">
        <time class="clock">{formatTimestamp(seconds)}</time>{' '}
        <strong>
          {isPaused ? 'Paused' : (text ?? 'Speak now. The first answer comes after 4 seconds.')}
        </strong>
      </p>
      <p class="level">
        <button type="button" onClick={() => (isPaused ? session.resume() : session.pause())}>
          {isPaused ? 'Resume' : 'Pause'}
        </button>
        <button
          type="button"
          class="main stop"
          disabled={state === 'stopping'}
          onClick={() => session.stop()}
        >
          Stop
        </button>
        <label>
          <input
            type="checkbox"
            checked={keep}
            onChange={(event) => {
              session.keep = event.currentTarget.checked;
              setKeep(session.keep);
            }}
          />{' '}
          Keep the recording in this page
        </label>
        <label>
          Level <meter min={0} max={1} value={level} />
        </label>
      </p>
      <Timeline
        label="Live timeline"
        scene={{ ...result, peaks: [levels], seconds: Math.max(0.1, seconds) }}
        view={{ from: to - SHOWN_SECONDS, to }}
        at={latest ? latest.end - 0.01 : seconds}
      />
      <Rows name="the microphone" segments={segmentsOf(result.steps).toReversed()} />
    </>
  );
}
