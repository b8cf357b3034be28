import type { Emotion, ModelId } from '@undertone/contract';
import { render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { About } from './about.tsx';
import { Problem } from './answers.tsx';
import { useAsk } from './ask.tsx';
import { keepChannelNames, readChannelNames, renamed } from './channel-names.ts';
import { Detail } from './detail.tsx';
import type { PathFile } from './dropped.ts';
import { FilesTable } from './files-table.tsx';
import { followLinks, takeLink } from './key.ts';
import { KeyForm } from './key-form.tsx';
import { labelsOf, sortFiles, truthOf } from './labelled-files.ts';
import { LiveSession, NO_MICROPHONE } from './live.ts';
import { forgetSaved } from './saved.ts';
import { ServerList } from './server-list.tsx';
import { shortKey } from './short-key.ts';
import { ShortcutSheet, useShortcuts } from './shortcuts.tsx';
import { EntryList, Examples, Ways } from './side.tsx';
import { useDrop } from './use-drop.ts';
import { useKey } from './use-key.ts';
import { useWorkbench } from './use-workbench.ts';

const link = takeLink();
followLinks();

function App() {
  const { ask, dialog } = useAsk();
  const { key, client, models, problem: keyProblem, signIn, signOut, check } = useKey(link, ask);
  const [status, announce] = useState('');
  const { bench, version } = useWorkbench(client, announce);
  const [model, setModel] = useState<ModelId>('4emotions');
  const [selected, setSelected] = useState<number | 'table'>();
  const [names, setNames] = useState(readChannelNames);
  const [problem, setProblem] = useState<unknown>();
  const [isHelp, setHelp] = useState(false);
  const labels = useRef<ReadonlyMap<string, Emotion>>(new Map());
  const { entries } = bench;
  const isTable = selected === 'table' && entries.length > 0;
  const entry = typeof selected === 'number' ? bench.find(selected) : undefined;
  const live = entries.find(({ state }) => state === 'live');

  const addFiles = async (files: readonly PathFile[]) => {
    if (!client || files.length === 0) return;
    setProblem(undefined);
    const { recordings, tables } = sortFiles(files);
    try {
      for (const table of tables) {
        labels.current = new Map([...labels.current, ...labelsOf(await table.text(), table.name)]);
      }
    } catch (error) {
      setProblem(error);
    }
    const labelled = recordings.map((it) => {
      const truth = it.truth ?? truthOf(it.path, labels.current);
      return truth === undefined ? it : { ...it, truth };
    });
    const added = bench.addFiles(labelled, model);
    if (tables.length > 0) announce(`${bench.relabel(labels.current)} recordings labelled`);
    if (added.length > 1 || tables.length > 0) setSelected('table');
    else if (added[0]) setSelected(added[0].id);
    else if (tables.length === 0) setProblem(new Error('There are no recordings in this folder.'));
  };
  const addExample = async (name: string) => {
    const response = await fetch(`/page/examples/${name}`);
    const file = new File([await response.blob()], name, { type: 'audio/wav' });
    await addFiles([{ file, path: name }]);
  };
  const onMicrophone = () => {
    if (live) return setSelected(live.id);
    if (!client) return;
    if (!navigator.mediaDevices) return setProblem(new Error(NO_MICROPHONE));
    setProblem(undefined);
    const session = new LiveSession(model);
    const added = bench.addLive(
      session,
      `Microphone ${new Date().toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })}`,
    );
    setSelected(added.id);
    void session.run(client).then(() => bench.endLive(added.id, session));
  };
  const open = (requestId: string, name: string) => setSelected(bench.open(requestId, name, model).id);
  const leave = () => {
    setSelected(bench.entries.length > 1 ? 'table' : undefined);
    // The button that had the focus is gone.
    document.querySelector<HTMLElement>('#recordings, .ways input')?.focus();
  };
  const clear = () => {
    bench.clear();
    leave();
  };
  const forget = async () => {
    const text = `Forget ${shortKey(key)} and close ${entries.length} recordings? Results of short ones are stored nowhere else.`;
    if (entries.length > 0 && !(await ask({ text, yes: 'Forget', danger: true }))) return;
    bench.clear();
    forgetSaved();
    signOut();
  };
  const openShared = async (requestId: string) => {
    const { requests = [] } = (await client?.asynch.list({ limit: 200 }).catch(() => undefined)) ?? {};
    open(requestId, requests.find(({ request_id }) => request_id === requestId)?.label ?? 'Shared result');
  };
  useEffect(() => {
    if (client && link.request) void openShared(link.request);
  }, [client !== undefined]);
  useEffect(() => {
    // After a reload, what was on the page is there again.
    if (selected === undefined && entries.length > 0)
      setSelected(entries.length > 1 ? 'table' : entries[0]?.id);
  }, [entries.length > 0]);
  // A key that expires while the page is open: the form asks for another one, and nothing is lost.
  const isRefused = entries.some(({ error }) => (error as { status?: number } | undefined)?.status === 401);
  useEffect(() => {
    if (isRefused) check();
  }, [isRefused]);
  useShortcuts((action) => {
    if (action === 'help') setHelp(true);
    else if (action === 'table' && entries.length > 1) setSelected('table');
    else return false;
    return true;
  });
  const dragging = useDrop((files) => void addFiles(files));

  const requests = new Set(entries.flatMap(({ requestId }) => requestId ?? []));
  return (
    <div class={dragging ? 'page over' : 'page'}>
      <header class="top">
        <h1>
          <img src="/page/icon.svg" alt="" width="32" height="32" /> Undertone
        </h1>
        <p>The emotion in a voice, from its tone</p>
        <nav aria-label="Documents">
          <a href="/docs">API</a>
          <a href="/page/model-card.html">Model card</a>
          <a href="/page/privacy.html">Privacy</a>
          <button type="button" class="quiet" aria-label="Keyboard shortcuts" onClick={() => setHelp(true)}>
            ?
          </button>
          {key !== '' && (
            <span class="inuse">
              <span title="The key in use, by its last characters">{shortKey(key)}</span>
              <button type="button" class="quiet" onClick={() => void forget()}>
                Forget it
              </button>
            </span>
          )}
        </nav>
      </header>
      <div class={isTable || entry ? 'bench filled' : 'bench'}>
        <aside>
          <Ways
            {...{ model, isLive: live !== undefined, isReady: client !== undefined, count: entries.length }}
            onModel={setModel}
            onFiles={(files) => void addFiles(files)}
            onMicrophone={onMicrophone}
          />
          <div class="card lists">
            <EntryList
              {...{ entries, isTable, selected: entry?.id, onOpen: setSelected }}
              onTable={() => setSelected('table')}
            />
            {client && <ServerList {...{ client, version, ask, announce, opened: requests, onOpen: open }} />}
            <Examples
              isReady={client !== undefined}
              onExample={(name) => void addExample(name).catch(setProblem)}
            />
          </div>
        </aside>
        <main>
          {key === '' && <KeyForm problem={keyProblem} onKey={signIn} />}
          {key !== '' && keyProblem !== undefined && <Problem error={keyProblem} onRetry={check} />}
          {problem !== undefined && <Problem error={problem} />}
          <p class="hidden" role="status">
            {status}
          </p>
          {isTable && <FilesTable {...{ entries, ask, onOpen: setSelected }} onClear={clear} />}
          {client && entry && (
            <Detail
              key={entry.id}
              {...{ client, entry, names, ask, announce }}
              others={entries.filter(({ id, result }) => id !== entry.id && result)}
              onRename={(channel, name) => {
                const next = renamed(names, channel, name);
                keepChannelNames(next);
                setNames(next);
              }}
              onRetry={() => bench.retry(entry.id)}
              onClose={() => {
                bench.close(entry.id);
                leave();
              }}
              onRemove={async () => {
                await bench.remove(entry.id);
                leave();
              }}
            />
          )}
          {key !== '' && !isTable && !entry && <Empty />}
        </main>
      </div>
      {models && <About models={models} />}
      {dialog}
      <ShortcutSheet open={isHelp} onClose={() => setHelp(false)} />
    </div>
  );
}

function Empty() {
  return (
    <section class="card empty" aria-label="Nothing opened">
      <p>
        <strong>Choose a recording, speak into the microphone, or try a voice.</strong>
      </p>
      <p class="note">
        Here you will see what the voice sounds like, moment by moment: angry, happy, neutral or sad.
      </p>
    </section>
  );
}

render(<App />, document.body);
