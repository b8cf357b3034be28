import { formatTimestamp, MODELS, type ModelId } from '@undertone/contract';
import { Badge } from './answers.tsx';
import { chosen, type PathFile } from './dropped.ts';
import { type Entry, isWorking, stateText } from './entry.ts';
import { NO_MICROPHONE } from './live.ts';
import { mainLabel } from './summary.ts';

/** Names of the example voices, set by the build. */
declare const EXAMPLES: readonly string[];

interface WaysProps {
  readonly isReady: boolean;
  readonly isLive: boolean;
  readonly count: number;
  readonly model: ModelId;
  readonly onModel: (model: ModelId) => void;
  readonly onFiles: (files: readonly PathFile[]) => void;
  readonly onMicrophone: () => void;
}

/** The ways in: files, a folder, the microphone. They wait for a key. */
export function Ways({ isReady, isLive, count, model, onModel, onFiles, onMicrophone }: WaysProps) {
  const onChange = (event: { currentTarget: HTMLInputElement }) => {
    onFiles(chosen(event.currentTarget.files ?? []));
    event.currentTarget.value = '';
  };
  return (
    <section class="card ways" aria-label="Add recordings">
      <div class="enter">
        <label class={isReady ? 'button main' : 'button main disabled'}>
          Choose files
          <input
            type="file"
            multiple
            disabled={!isReady}
            accept="audio/*,video/*,.wav,.mp3,.m4a,.ogg,.opus,.webm,.flac,.csv"
            onChange={onChange}
          />
        </label>
        <button
          type="button"
          class={isLive ? 'main stop' : 'main'}
          disabled={!isReady}
          onClick={onMicrophone}
        >
          {isLive ? 'Recording…' : 'Microphone'}
        </button>
        {count > 0 && (
          <a class="button jump" href="#recordings">
            Recordings ({count})
          </a>
        )}
      </div>
      <p class="row folder">
        <label class={isReady ? 'button' : 'button disabled'}>
          Choose a folder
          <input type="file" {...{ webkitdirectory: true }} disabled={!isReady} onChange={onChange} />
        </label>
      </p>
      <p class="note">
        Or drop files or a folder anywhere. 4 to 10 seconds give one answer, longer recordings (up to 1 GiB) a
        timeline.
      </p>
      {!window.isSecureContext && <p class="note">{NO_MICROPHONE}</p>}
      <label class="model">
        Model{' '}
        <select value={model} onChange={(event) => onModel(event.currentTarget.value as ModelId)}>
          {(Object.entries(MODELS) as [ModelId, readonly string[]][]).map(([id, emotions]) => (
            <option key={id} value={id}>
              {emotions.length} emotions
            </option>
          ))}
        </select>
      </label>
      <p class="note">{MODELS[model].join(', ')}</p>
    </section>
  );
}

/** More than this are better in the table. */
const LISTED = 8;

interface ListProps {
  readonly entries: readonly Entry[];
  readonly selected: number | undefined;
  readonly isTable: boolean;
  readonly onOpen: (id: number) => void;
  readonly onTable: () => void;
}

/** The recordings on the page, the newest first. */
export function EntryList({ entries, selected, isTable, onOpen, onTable }: ListProps) {
  if (entries.length === 0) return null;
  return (
    <section aria-labelledby="recordings">
      <h2 id="recordings" tabIndex={-1}>
        Recordings ({entries.length})
      </h2>
      <ul class="list">
        {entries.length > 1 && (
          <li>
            <button type="button" class="item" aria-current={isTable ? 'true' : undefined} onClick={onTable}>
              <span class="name">All {entries.length} in a table</span>
            </button>
          </li>
        )}
        {entries
          .slice(-LISTED)
          .toReversed()
          .map((entry) => (
            <li key={entry.id}>
              <button
                type="button"
                class="item"
                aria-current={entry.id === selected ? 'true' : undefined}
                onClick={() => onOpen(entry.id)}
              >
                <span class="name">{entry.name}</span>
                <Facts entry={entry} />
              </button>
            </li>
          ))}
      </ul>
    </section>
  );
}

function Facts({ entry }: { readonly entry: Entry }) {
  const { result } = entry;
  if (isWorking(entry)) return <span class="note">{stateText(entry)}</span>;
  if (!result) return <span class="note">failed</span>;
  const label = mainLabel(result.steps);
  return (
    <span class="note">
      {formatTimestamp(result.seconds)} {label && <Badge label={label} />}
    </span>
  );
}

interface ExamplesProps {
  readonly isReady: boolean;
  readonly onExample: (name: string) => void;
}

export function Examples({ isReady, onExample }: ExamplesProps) {
  return (
    <section class="examples" aria-labelledby="examples">
      <h2 id="examples">Try a voice</h2>
      <ul>
        {EXAMPLES.map((name) => (
          <li key={name}>
            <button type="button" class="chip" disabled={!isReady} onClick={() => onExample(name)}>
              {name.replace('.wav', '')}
            </button>
          </li>
        ))}
      </ul>
      <p class="note">Actors the model never heard; the name is the intended emotion. We chose clear ones.</p>
    </section>
  );
}
