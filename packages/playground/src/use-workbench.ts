import type { EmotionClient } from '@undertone/sdk';
import { useEffect, useRef, useState } from 'preact/hooks';
import { channelName, readChannelNames } from './channel-names.ts';
import { readSaved, save } from './saved.ts';
import { summary } from './summary.ts';
import { Workbench } from './workbench.ts';

/** The recordings of the page, which survive a reload. `version` counts the results, for lists that depend on them. */
export function useWorkbench(client: EmotionClient | undefined, announce: (text: string) => void) {
  const [, redraw] = useState({});
  const [version, setVersion] = useState(0);
  const restored = useRef(false);
  const [bench] = useState(
    () =>
      new Workbench({
        onChange: () => redraw({}),
        onResult: ({ name }, { steps }) => {
          announce(`${name}: ${summary(steps, (channel) => channelName(readChannelNames(), channel))}`);
          setVersion((before) => before + 1);
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
    addEventListener('pagehide', onHide);
    return () => removeEventListener('pagehide', onHide);
  }, []);
  return { bench, version };
}
