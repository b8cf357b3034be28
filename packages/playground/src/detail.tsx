import type { EmotionClient } from '@undertone/sdk';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Problem } from './answers.tsx';
import type { Question } from './ask.tsx';
import { type Entry, isWorking, stateText } from './entry.ts';
import { LiveView } from './live-view.tsx';
import { ResultView } from './result-view.tsx';

export interface DetailProps {
  readonly client: EmotionClient;
  readonly entry: Entry;
  readonly others: readonly Entry[];
  readonly names: readonly string[];
  readonly onRename: (channel: number, name: string) => void;
  readonly ask: (question: Question) => Promise<boolean>;
  readonly announce: (text: string) => void;
  readonly onRetry: () => void;
  /** Off the page; the server keeps what it has. */
  readonly onClose: () => void;
  /** Off the page and off the server. */
  readonly onRemove: () => Promise<void>;
}

/** One recording: its progress, its problem or its result. */
export function Detail(props: DetailProps) {
  const { entry, announce } = props;
  const { name, state, result, error, session } = entry;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    heading.current?.focus({ preventScroll: true });
    heading.current?.scrollIntoView({ block: 'nearest' });
  }, []);
  return (
    <article class="card" aria-labelledby="opened">
      <header class="opened">
        <h2 id="opened" ref={heading} tabIndex={-1}>
          {name}
        </h2>
        {result && <span class="note">{factsOf(entry)}</span>}
      </header>
      {error !== undefined && <Problem error={error} onRetry={props.onRetry} />}
      {state === 'live' && session && <LiveView session={session} announce={announce} />}
      {isWorking(entry) && state !== 'live' && <Working entry={entry} onCancel={props.onRemove} />}
      {result && <ResultView key={entry.id} {...props} result={result} />}
      {!isWorking(entry) && <Ends {...props} />}
    </article>
  );
}

function factsOf({ result, truth }: Entry): string {
  if (!result) return '';
  const { channels, seconds, model } = result;
  const kind = channels === 2 ? 'stereo, ' : channels > 2 ? `${channels} channels, ` : '';
  return `${kind}${seconds.toFixed(1)} s, ${model}${truth ? `, labelled ${truth}` : ''}`;
}

function Working({ entry, onCancel }: { readonly entry: Entry; readonly onCancel: () => Promise<void> }) {
  const { progress, state } = entry;
  const isKnown = progress !== undefined && (state === 'uploading' || state === 'processing');
  const text = stateText(entry);
  return (
    <p class="progress">
      <progress aria-label={text} max={100} {...(isKnown && { value: Math.floor(progress * 100) })} />
      <span>{text}</span>
      {/* The error is shown on the recording, which stays if it could not be deleted. */}
      <button type="button" onClick={() => void onCancel().catch(() => undefined)}>
        Cancel
      </button>
    </p>
  );
}

/** Closing and deleting: apart from everything else, and never without a question. */
function Ends({ entry, ask, announce, onClose, onRemove }: DetailProps) {
  const { name, result, requestId, state } = entry;
  const isStored = requestId !== undefined && state === 'done';
  const close = async () => {
    const onlyHere = result !== undefined && !isStored;
    const text = `Close ${name}? Its result is stored nowhere else.`;
    if (!onlyHere || (await ask({ text, yes: 'Close', danger: true }))) {
      onClose();
      announce(`${name} closed`);
    }
  };
  const [error, setError] = useState<unknown>();
  const removeNow = async () => {
    try {
      setError(undefined);
      await onRemove();
      announce(`${name} deleted`);
    } catch (reason) {
      setError(reason);
    }
  };
  const remove = async () => {
    const text = `Delete ${name} and its result from the server? This cannot be undone.`;
    if (await ask({ text, yes: 'Delete', danger: true })) await removeNow();
  };
  return (
    <footer class="ends">
      {error !== undefined && <Problem error={error} onRetry={() => void removeNow()} />}
      <button type="button" onClick={close}>
        Close
      </button>
      {requestId !== undefined && (
        <button type="button" class="danger" onClick={() => void remove()}>
          Delete from the server
        </button>
      )}
    </footer>
  );
}
