import { MODEL_IDS, type ModelId, toCsv, toSrt } from '@undertone/contract';
import type { EmotionClient } from '@undertone/sdk';
import { useEffect, useState } from 'preact/hooks';
import { Bars, Legend, Table } from './answers.tsx';
import { Card, Problem, ProgressLine } from './card.tsx';
import { classify } from './classify.ts';
import { CodeLines } from './code-lines.tsx';
import { readPalette, type Scene, toPng } from './draw.ts';
import type { Recording } from './recording.ts';
import { type Result, summary } from './result.ts';
import { Timeline } from './timeline.tsx';

interface Props {
  readonly client: EmotionClient;
  readonly name: string;
  readonly result: Result;
  /** Present if it can be played and compared with other models. */
  readonly recording?: Recording | undefined;
  readonly peaks?: readonly ArrayLike<number>[];
  readonly onRemove: () => void;
}

export function ResultCard({ client, name, result, recording, peaks = [], onRemove }: Props) {
  const [player, setPlayer] = useState<HTMLAudioElement | null>(null);
  const [compared, setCompared] = useState(false);
  const [error, setError] = useState<unknown>();
  const [first] = result.steps;
  const scene: Scene = {
    steps: result.steps,
    channels: result.channels,
    peaks: recording?.peaks ?? peaks,
    seconds: result.seconds,
    from: 0,
    to: Math.max(1, result.seconds),
  };
  const remove = async () => {
    try {
      if (result.requestId) await client.asynch.delete(result.requestId);
      onRemove();
    } catch (reason) {
      setError(reason);
    }
  };
  const base = name.replace(/\.\w{1,5}$/, '');
  const saveJson = () =>
    download(`${base}.json`, `${JSON.stringify(result.answer, null, 2)}\n`, 'application/json');
  const savePng = () =>
    toPng(scene, `${name}: ${summary(result)}`, readPalette(document.body)).then(
      (blob) => download(`${base}.png`, blob),
      setError,
    );
  return (
    <Card name={name}>
      <p class="summary">
        <strong>{summary(result)}</strong>{' '}
        <span class="note">
          {result.model}, {result.seconds.toFixed(1)} s
        </span>
      </p>
      {result.from === 'discrete' && first?.all_predictions && <Bars all={first.all_predictions} />}
      {result.from !== 'discrete' && <Legend steps={result.steps} />}
      <Timeline label={`Timeline of ${name}`} player={player} {...scene} />
      {recording && (
        // biome-ignore lint/a11y/useMediaCaption: the service does not transcribe speech
        <audio
          ref={setPlayer}
          controls
          preload="metadata"
          src={recording.url}
          aria-label={`Player of ${name}`}
        />
      )}
      {recording && recording.peaks.length === 0 && (
        <p class="note">No waveform: the file is too large, or your browser cannot read its format.</p>
      )}
      <Table result={result} name={name} />
      {error !== undefined && <Problem error={error} />}
      <p class="actions">
        <button type="button" onClick={() => download(`${base}.csv`, toCsv(result.steps), 'text/csv')}>
          CSV
        </button>
        <button type="button" onClick={saveJson}>
          JSON
        </button>
        <button
          type="button"
          onClick={() => download(`${base}.srt`, toSrt(result.steps), 'application/x-subrip')}
        >
          SRT
        </button>
        <button type="button" onClick={savePng}>
          PNG
        </button>
        {result.from === 'stream' && recording && (
          <button type="button" onClick={() => download(recording.file.name, recording.file)}>
            WAV
          </button>
        )}
        {recording && !compared && (
          <button type="button" onClick={() => setCompared(true)}>
            Compare models
          </button>
        )}
        <button type="button" class="quiet" onClick={remove}>
          {result.requestId ? 'Delete on the server' : 'Remove'}
        </button>
      </p>
      {compared && recording && <Comparison {...{ client, recording, result, name }} />}
      <CodeLines result={result} fileName={name} />
    </Card>
  );
}

type ComparisonProps = Pick<Props, 'client' | 'name' | 'result'> & { readonly recording: Recording };

/** The same recording, classified by every model. */
function Comparison({ client, name, result, recording }: ComparisonProps) {
  const [results, setResults] = useState<ReadonlyMap<ModelId, Result>>(new Map([[result.model, result]]));
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    const { signal } = new AbortController();
    for (const model of MODEL_IDS.filter((id) => id !== result.model)) {
      classify(client, recording, { model, signal })
        .then(async (found) => {
          setResults((before) => new Map([...before, [model, found]]));
          // Nothing else refers to this request: delete it from the server.
          if (found.requestId) await client.asynch.delete(found.requestId);
        })
        .catch(setError);
    }
  }, []);
  return (
    <section class="comparison" aria-label={`Models compared on ${name}`}>
      {MODEL_IDS.map((model) => {
        const found = results.get(model);
        const [first] = found?.steps ?? [];
        return (
          <div key={model}>
            <h4>{model}</h4>
            {!found && <ProgressLine />}
            {found?.from === 'discrete' && first?.all_predictions && <Bars all={first.all_predictions} />}
            {found && found.from !== 'discrete' && (
              <Timeline
                label={`Timeline of ${name} with ${model}`}
                {...found}
                peaks={[]}
                from={0}
                to={Math.max(1, found.seconds)}
              />
            )}
          </div>
        );
      })}
      {error !== undefined && <Problem error={error} />}
    </section>
  );
}

function download(name: string, content: Blob | string, type = 'text/plain'): void {
  const blob = typeof content === 'string' ? new Blob([content], { type: `${type};charset=utf-8` }) : content;
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
