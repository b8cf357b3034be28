import { EmotionClient, type ModelList } from '@undertone/sdk';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Question } from './ask.tsx';
import { forgetKey, keepKey, type Link, readKey } from './key.ts';
import { shortKey } from './short-key.ts';

/** A person waits: after a few seconds without an answer the page says so. */
const RETRIES = 3;

export interface KeyState {
  readonly key: string;
  readonly client: EmotionClient | undefined;
  readonly models: ModelList | undefined;
  readonly problem: unknown;
  readonly signIn: (key: string, remember: boolean) => void;
  readonly signOut: () => void;
  readonly check: () => void;
}

/** The key of this tab. A link never replaces a key without a question. */
export function useKey(link: Link, ask: (question: Question) => Promise<boolean>): KeyState {
  const [key, setKey] = useState(() => {
    const stored = readKey();
    if (stored === '' && link.key) keepKey(link.key, false);
    return stored || link.key || '';
  });
  const [models, setModels] = useState<ModelList>();
  const [problem, setProblem] = useState<unknown>();
  const client = useMemo(
    () =>
      key ? new EmotionClient({ apiKey: key, baseUrl: location.origin, retryAttempts: RETRIES }) : undefined,
    [key],
  );
  const signIn = (given: string, remember: boolean) => {
    keepKey(given, remember);
    setProblem(undefined);
    setKey(given);
  };
  const signOut = () => {
    forgetKey();
    setKey('');
  };
  const check = () => {
    // Without a client, the reason why the last key was given up stays visible.
    if (!client) return;
    setProblem(undefined);
    client.models().then(setModels, (reason: Error & { status?: number }) => {
      // A token for short recordings or live audio alone cannot list the models, but it works.
      if (reason.status === 403) return;
      setProblem(reason);
      if (reason.status === 401) signOut();
    });
  };
  useEffect(check, [client]);
  useEffect(() => {
    const { key: offered } = link;
    if (!offered || offered === key) return;
    const text = `This link contains another ${shortKey(offered)}. Use it instead of your ${shortKey(key)}?`;
    void ask({ text, yes: `Use ${shortKey(offered)}`, no: `Keep ${shortKey(key)}` }).then((yes) => {
      if (yes) signIn(offered, false);
    });
  }, []);
  return { key, client, models, problem, signIn, signOut, check };
}
