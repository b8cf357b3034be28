import { MODEL_IDS, type ModelId } from '@undertone/contract';
import type { EmotionClient, Progress } from '@undertone/sdk';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Bars, Legend, Table } from './answers.tsx';
import { classify } from './classify.ts';
import { CodeLines } from './code-lines.tsx';
import { readPalette, type Scene, toPng } from './draw.ts';
import { describe, percent } from './emotions.ts';
import { download, toCsv, toJson, toSrt } from './export.ts';
import { openRecording, type Recording } from './recording.ts';
import type { Result } from './result.ts';
import { Timeline } from './timeline.tsx';
import { inTurn } from './turns.ts';

interface FileCardProps {
  readonly client: EmotionClient;
  readonly file: File;
  readonly model: ModelId;
  readonly onRemove: () => void;
  /** For those who cannot see the page. */
  readonly announce: (words: string) => void;
}

/** A file from the moment it was given: sent, waited for, shown. */
export function FileCard({ client, file, model, onRemove, announce }: FileCardProps) {
  const [recording, setRecording] = useState<Recording>();
  const [progress, setProgress] = useState<Progress>();
  const [result, setResult] = useState<Result>();
  const [error, setError] = useState<unknown>();
  const aborter = useRef(new AbortController());

  useEffect(() => {
    const { signal } = aborter.current;
    let url = '';
    const work = async () => {
      const opened = await openRecording(file);
      url = opened.url;
      setRecording(opened);
      const found = await inTurn(() => {
        signal.throwIfAborted();
        return classify(client, opened, { model, onProgress: setProgress, signal });
      });
      setResult(found);
      announce(`${file.name}: ${summary(found)}`);
    };
    work().catch((reason: unknown) => {
      if (!signal.aborted) setError(reason);
    });
    return () => URL.revokeObjectURL(url);
  }, []);

  const cancel = () => {
    aborter.current.abort(new Error('cancelled'));
    onRemove();
  };
  if (result && recording) {
    return <ResultCard {...{ client, recording, result, onRemove }} name={file.name} file={recording.file} />;
  }
  return (
    <Card name={file.name}>
      {error === undefined ? <ProgressLine progress={progress} /> : <Problem error={error} />}
      <p class="actions">
        <button type="button" class="quiet" onClick={cancel}>
          {error === undefined ? 'Cancel' : 'Remove'}
        </button>
      </p>
    </Card>
  );
}

const STATES = {
  uploading: 'Uploading',
  queued: 'Waiting in the queue',
  processing: 'Classifying',
  completed: 'Done',
};

function ProgressLine({ progress }: { readonly progress: Progress | undefined }) {
  const words = progress ? STATES[progress.status] : 'Classifying';
  const share = progress && progress.status !== 'queued' ? Math.floor(progress.progress * 100) : undefined;
  return (
    <p class="progress">
      <progress aria-label={words} max={100} value={share} />
      {words} {share !== undefined && `${share} %`}
    </p>
  );
}

export function Problem({ error }: { readonly error: unknown }) {
  return (
    <p class="problem" role="alert">
      {error instanceof Error ? error.message : String(error)}
    </p>
  );
}

export function Card({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <article class="card">
      <h3>{name}</h3>
      {children}
    </article>
  );
}

interface ResultCardProps {
  readonly client: EmotionClient;
  readonly name: string;
  readonly result: Result;
  /** What can be played, and classified again by other models. */
  readonly file?: File | undefined;
  readonly recording?: Recording | undefined;
  readonly peaks?: readonly ArrayLike<number>[];
  readonly onRemove: () => void;
}

export function ResultCard(props: ResultCardProps) {
  const { client, name, result, recording, onRemove } = props;
  const [player, setPlayer] = useState<HTMLAudioElement | null>(null);
  const [compared, setCompared] = useState(false);
  const [error, setError] = useState<unknown>();
  const [first] = result.steps;
  const scene: Scene = {
    steps: result.steps,
    channels: result.channels,
    peaks: recording?.peaks ?? props.peaks ?? [],
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
      {result.from === 'discrete' && first?.all && <Bars all={first.all} />}
      {result.from !== 'discrete' && <Legend steps={result.steps} />}
      <Timeline label={`Time line of ${name}`} player={player} {...scene} />
      {recording && (
        // biome-ignore lint/a11y/useMediaCaption: what was said is nobody's business here, and unknown
        <audio
          ref={setPlayer}
          controls
          preload="metadata"
          src={recording.url}
          aria-label={`Player of ${name}`}
        />
      )}
      {recording && recording.peaks.length === 0 && (
        <p class="note">There is no waveform: the file is large, or your browser cannot read its format.</p>
      )}
      <Table result={result} name={name} />
      {error !== undefined && <Problem error={error} />}
      <p class="actions">
        <button type="button" onClick={() => download(`${base}.csv`, toCsv(result), 'text/csv')}>
          CSV
        </button>
        <button type="button" onClick={() => download(`${base}.json`, toJson(result), 'application/json')}>
          JSON
        </button>
        <button type="button" onClick={() => download(`${base}.srt`, toSrt(result), 'application/x-subrip')}>
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

type Comparing = Pick<ResultCardProps, 'client' | 'name' | 'result'> & { readonly recording: Recording };

/** The same recording through every model. */
function Comparison({ client, name, result, recording }: Comparing) {
  const [results, setResults] = useState<ReadonlyMap<ModelId, Result>>(new Map([[result.model, result]]));
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    const { signal } = new AbortController();
    for (const model of MODEL_IDS.filter((id) => id !== result.model)) {
      inTurn(() => classify(client, recording, { model, onProgress: () => undefined, signal }))
        .then(async (found) => {
          setResults((before) => new Map([...before, [model, found]]));
          // Nobody knows its id but we: it would only lie there.
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
            {!found && <ProgressLine progress={undefined} />}
            {found?.from === 'discrete' && first?.all && <Bars all={first.all} />}
            {found && found.from !== 'discrete' && (
              <Timeline
                label={`Time line of ${name} with ${model}`}
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

/** The answer in one line. */
export function summary({ from, steps }: Result): string {
  const [only] = steps;
  if (only === undefined) return 'nothing was heard';
  if (from === 'discrete' || steps.length === 1) {
    const words = describe(only);
    return words === 'no speech' ? words : `${words}, ${percent(only.confidence)}`;
  }
  const seconds = new Map<string, number>();
  for (const step of steps) {
    const words = describe(step).replace(/ \(.*/, '');
    seconds.set(words, (seconds.get(words) ?? 0) + step.end - step.start);
  }
  const total = [...seconds.values()].reduce((sum, value) => sum + value, 0) || 1;
  const [[most, share] = ['', 0]] = [...seconds].toSorted(([, a], [, b]) => b - a);
  return `mostly ${most}, ${Math.round((share / total) * 100)} % of the time`;
}
