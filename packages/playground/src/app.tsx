import { MODELS, type ModelId } from '@undertone/contract';
import { EmotionClient, type ModelList } from '@undertone/sdk';
import { render } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { About } from './about.tsx';
import { Problem } from './card.tsx';
import { FileCard } from './file-card.tsx';
import { forgetKey, keepKey, readKey } from './key.ts';
import { KeyForm } from './key-form.tsx';
import { LiveSession, NO_MICROPHONE } from './live.ts';
import { LiveCard } from './live-card.tsx';

/** Names of the example voices, set by the build. */
declare const EXAMPLES: readonly string[];

type Entry = { readonly id: number; readonly model: ModelId } & (
  | { readonly file: File }
  | { readonly session: LiveSession }
);

const NO_KEY = new Error('Enter an API key first.');

function App() {
  const [key, setKey] = useState(readKey);
  const [models, setModels] = useState<ModelList>();
  const [keyProblem, setKeyProblem] = useState<unknown>();
  const [problem, setProblem] = useState<unknown>();
  const [model, setModel] = useState<ModelId>('4emotions');
  const [entries, setEntries] = useState<readonly Entry[]>([]);
  const [live, setLive] = useState<LiveSession>();
  const [version, setVersion] = useState(0);
  const [status, setStatus] = useState('');
  const nextId = useRef(1);
  const client = useMemo(
    () => (key ? new EmotionClient({ apiKey: key, baseUrl: location.origin }) : undefined),
    [key],
  );

  const signOut = () => {
    forgetKey();
    setKey('');
  };
  useEffect(() => {
    if (client === undefined) return;
    client.models().then(
      (list) => {
        setModels(list);
        setKeyProblem(undefined);
      },
      (reason: Error & { status?: number }) => {
        setKeyProblem(reason);
        if (reason.status === 401) signOut();
      },
    );
  }, [client]);

  const add = (more: readonly ({ file: File } | { session: LiveSession })[]) => {
    if (client === undefined) return setProblem(NO_KEY);
    setProblem(undefined);
    const added = more.map((entry) => ({ ...entry, id: nextId.current++, model }));
    setEntries((before) => [...added, ...before]);
  };
  const addFiles = (files: Iterable<File>) => add([...files].map((file) => ({ file })));
  const addExample = async (name: string) => {
    const response = await fetch(`/page/examples/${name}`);
    addFiles([new File([await response.blob()], name, { type: 'audio/wav' })]);
  };
  const remove = (id: number) => setEntries((before) => before.filter((entry) => entry.id !== id));

  const toggleMicrophone = () => {
    if (live !== undefined) return live.stop();
    if (client === undefined) return setProblem(NO_KEY);
    if (!navigator.mediaDevices) return setProblem(new Error(NO_MICROPHONE));
    const session = new LiveSession(model, () => setVersion((before) => before + 1));
    setLive(session);
    add([{ session }]);
    void session.run(client).finally(() => setLive(undefined));
  };
  const dragging = useDrop(addFiles);

  return (
    <>
      <header>
        <h1>
          <img src="/page/icon.svg" alt="" width="32" height="32" /> Undertone
        </h1>
        <p>The emotion in a voice, from its tone</p>
        <nav aria-label="Documents">
          <a href="/docs">API</a>
          <a href="/page/model-card.html">Model card</a>
          <a href="/page/privacy.html">Privacy</a>
          {key !== '' && (
            <button type="button" class="quiet" onClick={signOut}>
              Forget the key
            </button>
          )}
        </nav>
      </header>
      <main>
        {key === '' && (
          <KeyForm
            problem={keyProblem}
            onKey={(given, remember) => {
              keepKey(given, remember);
              setKey(given);
            }}
          />
        )}
        {key !== '' && keyProblem !== undefined && <Problem error={keyProblem} />}
        <section class={dragging ? 'drop over' : 'drop'} aria-label="Recordings">
          <p class="row">
            <label class="button main">
              Choose recordings
              <input
                type="file"
                multiple
                accept="audio/*,video/*,.wav,.mp3,.m4a,.ogg,.opus,.webm,.flac"
                onChange={(event) => {
                  addFiles(event.currentTarget.files ?? []);
                  event.currentTarget.value = '';
                }}
              />
            </label>
            <button type="button" class={live ? 'main stop' : 'main'} onClick={toggleMicrophone}>
              {live ? 'Stop' : 'Microphone'}
            </button>
          </p>
          <p class="note">
            or drop files anywhere on this page. Recordings of 4 to 10 seconds are classified immediately;
            longer ones, up to 1 GiB, become a timeline.
          </p>
          {!window.isSecureContext && <p class="note">{NO_MICROPHONE}</p>}
          <p class="row">
            <label>
              Model{' '}
              <select value={model} onChange={(event) => setModel(event.currentTarget.value as ModelId)}>
                {(Object.entries(MODELS) as [ModelId, readonly string[]][]).map(([id, emotions]) => (
                  <option key={id} value={id}>
                    {id}: {emotions.join(', ')}
                  </option>
                ))}
              </select>
            </label>
          </p>
          {problem !== undefined && <Problem error={problem} />}
        </section>
        <section class="examples" aria-labelledby="examples">
          <h2 id="examples">Or try a voice</h2>
          <ul>
            {EXAMPLES.map((name) => (
              <li key={name}>
                <button type="button" class="chip" onClick={() => addExample(name).catch(setProblem)}>
                  {name.replace('.wav', '')}
                </button>
              </li>
            ))}
          </ul>
          <p class="note">
            Actors the model never heard; the name is the intended emotion. We chose clear ones.
          </p>
        </section>
        <p class="hidden" role="status">
          {status}
        </p>
        <section aria-label="Results">
          {client &&
            entries.map((entry) =>
              'file' in entry ? (
                <FileCard
                  key={entry.id}
                  {...{ client, file: entry.file, model: entry.model, announce: setStatus }}
                  onRemove={() => remove(entry.id)}
                />
              ) : (
                <LiveCard
                  key={entry.id}
                  {...{ client, session: entry.session, version }}
                  onRemove={() => remove(entry.id)}
                />
              ),
            )}
        </section>
        {models && <About models={models} />}
      </main>
    </>
  );
}

/** Accepts files dropped anywhere on the page. */
function useDrop(onFiles: (files: Iterable<File>) => void): boolean {
  const [over, setOver] = useState(false);
  const latest = useRef(onFiles);
  latest.current = onFiles;
  useEffect(() => {
    const onDrag = (event: DragEvent) => {
      event.preventDefault();
      setOver(event.type === 'dragover');
      if (event.type === 'drop' && event.dataTransfer?.files.length) latest.current(event.dataTransfer.files);
    };
    const events = ['dragover', 'dragleave', 'drop'] as const;
    for (const event of events) addEventListener(event, onDrag);
    return () => {
      for (const event of events) removeEventListener(event, onDrag);
    };
  }, []);
  return over;
}

render(<App />, document.body);
