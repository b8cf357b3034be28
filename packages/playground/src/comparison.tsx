import { hasSpeech, labelOf, MODEL_IDS, type ModelId, UNSURE } from '@undertone/contract';
import type { EmotionClient } from '@undertone/sdk';
import { useEffect, useState } from 'preact/hooks';
import { Bars, Problem } from './answers.tsx';
import { classify } from './classify.ts';
import type { Recording } from './entry.ts';
import type { Result } from './result.ts';
import { averagesOf } from './summary.ts';
import { Timeline } from './timeline.tsx';

interface Props {
  readonly client: EmotionClient;
  readonly name: string;
  readonly result: Result;
  readonly recording: Recording;
}

/** The same recording, classified by every model. */
export function Comparison({ client, name, result, recording }: Props) {
  const [results, setResults] = useState<ReadonlyMap<ModelId, Result>>(new Map([[result.model, result]]));
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    const aborter = new AbortController();
    const { signal } = aborter;
    for (const model of MODEL_IDS.filter((id) => id !== result.model)) {
      classify(client, recording, { model, name, signal })
        .then(async (found) => {
          setResults((before) => new Map([...before, [model, found]]));
          // Nothing else refers to this request: delete it from the server.
          if (found.requestId) await client.asynch.delete(found.requestId);
        })
        .catch((reason: unknown) => {
          if (!signal.aborted) setError(reason);
        });
    }
    return () => aborter.abort(new Error('closed'));
  }, []);
  return (
    <section class="comparison" aria-label={`Models compared on ${name}`}>
      {MODEL_IDS.map((model) => {
        const found = results.get(model);
        return (
          <div key={model}>
            <h4>{model}</h4>
            {!found && error === undefined && <progress aria-label={`Analysing with ${model}`} />}
            {found && <ModelResult {...{ name, found }} />}
          </div>
        );
      })}
      {error !== undefined && <Problem error={error} />}
    </section>
  );
}

function ModelResult({ name, found }: { readonly name: string; readonly found: Result }) {
  const { steps, channels, seconds, model } = found;
  if (found.from === 'discrete') {
    const heard = steps.filter(hasSpeech);
    if (heard.length === 0) return <p>no speech</p>;
    return <Bars all={averagesOf(steps, model)} sure={heard.some((step) => labelOf(step) !== UNSURE)} />;
  }
  const scene = { steps, channels, seconds, peaks: [] };
  const view = { from: 0, to: Math.max(1, seconds) };
  return <Timeline label={`Timeline of ${name} with ${model}`} scene={scene} view={view} />;
}
