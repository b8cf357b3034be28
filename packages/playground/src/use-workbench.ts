import type { EmotionClient } from '@undertone/sdk';
import { useEffect, useRef, useState } from 'preact/hooks';
import { channelName, readChannelNames } from './channel-names.ts';
import { readSaved, save } from './saved.ts';
import { summary } from './summary.ts';
import { Workbench } from './workbench.ts';

/** The recordings of the page, which survive a reload. `version` counts the results that the server stores. */
export function useWorkbench(client: EmotionClient | undefined, announce: (text: string) => void) {
  const [, redraw] = useState({});
  const [version, setVersion] = useState(0);
  const restored = useRef(false);
  const finished = useRef(0);
  const nameOf = (channel: number) => channelName(readChannelNames(), channel);
  const [bench] = useState(
    () =>
      new Workbench({
        onChange: () => redraw({}),
        onFinished: ({ name }, result) => {
          finished.current++;
          // What the server stores has changed.
          if (result?.requestId) setVersion((before) => before + 1);
          // A folder is one announcement, not hundreds.
          if (bench.isBusy) return;
          const one = result && `${name}: ${summary(result.steps, nameOf)}`;
          announce(finished.current > 1 ? `${finished.current} recordings done` : (one ?? `${name} failed`));
          finished.current = 0;
        },
      }),
  );
  bench.client = client;
  useEffect(() => {
    if (!client || restored.current) return;
    restored.current = true;
    bench.restore(readSaved());
  }, [client]);
  useEffect(() => {
    const onHide = () => {
      // Before there is a key, what the last page left is still waiting to be restored.
      if (restored.current) save(bench.entries);
    };
    const onLeave = (event: BeforeUnloadEvent) => {
      // The browser asks: what is being sent or recorded would be lost.
      if (bench.isBusy) event.preventDefault();
    };
    addEventListener('pagehide', onHide);
    addEventListener('beforeunload', onLeave);
    return () => {
      removeEventListener('pagehide', onHide);
      removeEventListener('beforeunload', onLeave);
    };
  }, []);
  return { bench, version };
}
