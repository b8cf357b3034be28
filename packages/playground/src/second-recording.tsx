import { useState } from 'preact/hooks';
import { channelName } from './channel-names.ts';
import type { Scene } from './draw.ts';
import type { Entry } from './entry.ts';
import type { Result } from './result.ts';
import { headline } from './summary.ts';
import { Timeline } from './timeline.tsx';

interface Props {
  readonly entry: Entry;
  readonly result: Result;
  readonly others: readonly Entry[];
  readonly names: readonly string[];
}

/** This recording and another one below it, on the same time axis. */
export function SecondRecording({ entry, result, others, names }: Props) {
  const [id, setId] = useState(0);
  const second = others.find((other) => other.id === id);
  if (others.length === 0) return null;
  const pair = second?.result
    ? [
        { entry, result },
        { entry: second, result: second.result },
      ]
    : [];
  const to = pair.reduce((most, { result: { seconds } }) => Math.max(most, seconds), 1);
  return (
    <div class="second">
      <label>
        Compare with{' '}
        <select value={String(id)} onChange={(event) => setId(Number(event.currentTarget.value))}>
          <option value="0">another recording…</option>
          {others.map((other) => (
            <option key={other.id} value={String(other.id)}>
              {other.name}
            </option>
          ))}
        </select>
      </label>
      {pair.map((one) => (
        <section key={one.entry.id} aria-label={`${one.entry.name} on the same axis`}>
          <h4>
            {one.entry.name}: {headline(one.result.steps)}
          </h4>
          <Timeline
            label={`${one.entry.name} on the same axis`}
            scene={sceneOf(one.entry, one.result, names)}
            view={{ from: 0, to }}
          />
        </section>
      ))}
    </div>
  );
}

function sceneOf(
  { recording }: Entry,
  { steps, channels, seconds }: Result,
  names: readonly string[],
): Scene {
  const lanes = Array.from({ length: channels }, (_, channel) => channelName(names, channel));
  const peaks = recording?.peaks ?? [];
  return { steps, channels, seconds, peaks, ...(channels > 1 && { names: lanes }) };
}
