import type { EmotionClient } from '@undertone/sdk';
import { useEffect, useState } from 'preact/hooks';
import { Table } from './answers.tsx';
import { Card, Problem } from './card.tsx';
import type { LiveSession } from './live.ts';
import { openRecording, type Recording } from './recording.ts';
import { summary } from './result.ts';
import { ResultCard } from './result-card.tsx';
import { Timeline } from './timeline.tsx';

interface Props {
  readonly client: EmotionClient;
  readonly session: LiveSession;
  /** Changes with the session, so that the card is rendered again. */
  readonly version: number;
  readonly onRemove: () => void;
}

const NAME = 'Microphone';
/** The live timeline shows the last minute. */
const SHOWN_SECONDS = 60;

export function LiveCard({ client, session, onRemove }: Props) {
  const { state, error, result, levels, seconds, level } = session;
  const recording = useKeptRecording(session);
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
    const tooShort = new Error('No result: speak for at least 4 seconds before you stop.');
    return (
      <Card name={NAME}>
        <Problem error={error ?? tooShort} />
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
            ? summary({ from: 'stream', steps: [latest] })
            : 'Speak now. The first answer comes after 4 seconds.'}
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
        label="Live timeline"
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

function useKeptRecording(session: LiveSession): Recording | undefined {
  const [recording, setRecording] = useState<Recording>();
  const ended = session.state === 'ended';
  useEffect(() => {
    const file = ended ? session.recording : undefined;
    if (file) void openRecording(file).then(setRecording);
  }, [ended, session]);
  return recording;
}
