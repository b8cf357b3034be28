import type { EmotionClient } from '@undertone/sdk';
import { useEffect, useState } from 'preact/hooks';
import { Table } from './answers.tsx';
import { Card, Problem, ResultCard, summary } from './card.tsx';
import type { LiveSession } from './live.ts';
import { openRecording, type Recording } from './recording.ts';
import { Timeline } from './timeline.tsx';

interface Props {
  readonly client: EmotionClient;
  readonly session: LiveSession;
  /** Changes with the session, so that this is drawn anew. */
  readonly version: number;
  readonly onRemove: () => void;
}

const NAME = 'Microphone';
/** The time line shows the last minute while it moves. */
const SHOWN_SECONDS = 60;

export function LiveCard({ client, session, onRemove }: Props) {
  const { state, error, result, levels, seconds, level } = session;
  const recording = useKept(session);
  if (state === 'ended' && result.steps.length > 0) {
    const name = recording?.file.name ?? NAME;
    return (
      <>
        {error !== undefined && <Problem error={error} />}
        <ResultCard {...{ client, name, result, recording, onRemove }} peaks={[levels]} />
      </>
    );
  }
  if (state === 'ended') {
    const silent = new Error('Nothing was classified: speak for at least 4 seconds before you stop.');
    return (
      <Card name={NAME}>
        <Problem error={error ?? silent} />
        <p class="actions">
          <button type="button" class="quiet" onClick={onRemove}>
            Remove
          </button>
        </p>
      </Card>
    );
  }
  const to = Math.max(SHOWN_SECONDS, seconds);
  const latest = result.steps.at(-1);
  return (
    <Card name={NAME}>
      <p class="summary">
        <strong>
          {latest
            ? summary({ ...result, steps: [latest] })
            : 'Speak: the first answer comes after 4 seconds.'}
        </strong>
      </p>
      <p class="level">
        <label>
          Level <meter min={0} max={1} value={level} />
        </label>
        <button type="button" onClick={() => (state === 'paused' ? session.resume() : session.pause())}>
          {state === 'paused' ? 'Resume' : 'Pause'}
        </button>
        <label>
          <input
            type="checkbox"
            checked={session.keep}
            onChange={(event) => {
              session.keep = event.currentTarget.checked;
            }}
          />{' '}
          Keep the recording in this page
        </label>
      </p>
      <Timeline
        label="Live time line"
        {...result}
        peaks={[levels]}
        from={to - SHOWN_SECONDS}
        to={to}
        seconds={Math.max(0.1, seconds)}
      />
      <Table result={result} name="the microphone" />
    </Card>
  );
}

function useKept(session: LiveSession): Recording | undefined {
  const [recording, setRecording] = useState<Recording>();
  const ended = session.state === 'ended';
  useEffect(() => {
    const file = ended ? session.recording : undefined;
    if (file) void openRecording(file).then(setRecording);
  }, [ended, session]);
  return recording;
}
