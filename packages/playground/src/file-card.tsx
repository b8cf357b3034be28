import type { ModelId } from '@undertone/contract';
import type { EmotionClient, Progress } from '@undertone/sdk';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Card, Problem, ProgressLine } from './card.tsx';
import { classify } from './classify.ts';
import { openRecording, type Recording } from './recording.ts';
import { type Result, summary } from './result.ts';
import { ResultCard } from './result-card.tsx';

interface Props {
  readonly client: EmotionClient;
  readonly file: File;
  readonly model: ModelId;
  readonly onRemove: () => void;
  /** Tells a screen reader. */
  readonly announce: (text: string) => void;
}

/** A file from drop to result. */
export function FileCard({ client, file, model, onRemove, announce }: Props) {
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
      const found = await classify(client, opened, { model, onProgress: setProgress, signal });
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
    return <ResultCard {...{ client, recording, result, onRemove }} name={file.name} />;
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
